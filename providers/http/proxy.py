"""The proxy that the environment names for a server."""

from __future__ import annotations

import base64
import os
import urllib.request
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from eyechart.providers.base import AuthError, ProviderError, StopRunError
from eyechart.providers.secrets import keep_address, keep_secret, redact_address


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy, and the server that is asked through it."""

    address: str
    """With `http://` or another scheme, and without user and password."""
    headers: dict[str, str]
    """The user and the password, if it has them."""
    name: str
    """The variable that names it."""
    host: str
    """The server."""

    @property
    def shown(self) -> str:
        """The address for messages."""
        return redact_address(self.address.replace("://", f"://{'***@' if self.headers else ''}"))


def proxy_for(address: str) -> Proxy | None:
    """The proxy for requests to an address; `None` where it is asked itself."""
    parts, proxies = urlsplit(address), urllib.request.getproxies()
    host = parts.hostname or ""
    kind = next((one for one in (parts.scheme, "all") if proxies.get(one)), None)
    if kind is None or urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    name = f"{kind}_proxy"
    given = proxies[kind] if "://" in proxies[kind] else f"http://{proxies[kind]}"
    keep_address(given)
    plain, headers = without_user(given)
    return Proxy(
        plain,
        {"Proxy-Authorization": headers} if headers else {},
        next((one for one in (name, name.upper()) if os.environ.get(one)), "this system"),
        host,
    )


def noted(error: ProviderError, proxy: Proxy | None) -> ProviderError:
    """The error with the proxy through which its request went, if it did. No access may then be
    the proxy's word: no key is to blame.
    """
    if proxy is None:
        return error
    noted = (StopRunError if isinstance(error, AuthError) else type(error))(
        f"{error}; the request went to the proxy {proxy.shown} of {proxy.name}: "
        f"NO_PROXY={proxy.host} asks the server itself"
    )
    vars(noted).update({one: value for one, value in vars(error).items() if one != "lines"})
    return noted


def without_user(address: str) -> tuple[str, str]:
    """An address without its user and password, and the value of the header that has them; empty
    if there are none.
    """
    scheme, slashes, rest = address.partition("://")
    user_info, at, rest = rest.rpartition("@")
    if not at:
        return address, ""
    user, _, password = user_info.partition(":")
    pair = f"{unquote(user)}:{unquote(password)}".encode(errors="replace")
    authorization = f"Basic {base64.b64encode(pair).decode()}"
    keep_secret(authorization)
    return f"{scheme}{slashes}{rest}", authorization
