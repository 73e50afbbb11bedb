"""The embedded model: a small Llama in plain NumPy that answers without a key or a server."""

from __future__ import annotations

from providers.tiny.provider import TinyProvider, open_provider

__all__ = ["TinyProvider", "open_provider"]
