"""A connection to a Ray cluster, for one job after another."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from eyechart.harness.satellites.ray.rows import ResultRow, SampleRow, read_table, tables
from eyechart.providers.base import SetupError, StopRunError, install
from eyechart.providers.naming import named
from eyechart.providers.secrets import redact

_LOCAL_SPARE = 8
"""Logical processors of a cluster on this machine, besides one for each worker. Every stage of a
job holds one, and a job with too few would wait for ever.
"""
_STARTS = 3
"""How often a cluster on this machine is started: Ray gives up after 30 s, and a busy machine may
need more.
"""
_CONNECT_S = 10.0
_END_S = 5.0
_ERROR_CHARS = 400
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # sends nothing to anybody
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # of what Ray's C++ prints
    # Ray starts a new cluster when a function of it is called after `shutdown`, as the thread of a
    # job does that is ended; read when Ray is imported
    "RAY_ENABLE_AUTO_CONNECT": "0",
}
_LOCAL_SETTINGS = {
    # listens on the loopback address alone, as Ray does on macOS and Windows by default; Ray
    # replaces `_node_ip_address="127.0.0.1"` by an address that other machines reach
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",  # other users of this machine do not get in, from Ray 2.52 on
}


class JobError(Exception):
    """A job ended before all of it came back; the message is one line."""


def connect(ray: Any, address: str, options: Mapping[str, Any]) -> None:
    """Connects Ray to the cluster at an address, or starts one on this machine for `local`.

    Raises:
        SetupError: there is none at the address, or it could not be started in three trials.
    """
    for left in reversed(range(_STARTS)):
        try:
            with _quiet_stderr():
                ray.init(
                    address=address, log_to_driver=False, logging_level=logging.ERROR, **options
                )
        except Exception as error:
            is_late = address == "local" and "timed out during startup" in str(error)
            if left and is_late:
                ray.shutdown()
                continue
            raise SetupError(f"no Ray cluster at {address}: {_line(error)}") from error
        return


class Cluster:
    """A connection to a Ray cluster, or a cluster on this machine that ends with the command."""

    def __init__(self, address: str | None, workers: int) -> None:
        """Raises `SetupError` if Ray is not installed, or no cluster is at `address`."""
        address = address or os.environ.get("RAY_ADDRESS") or "local"
        settings = dict(_SETTINGS)
        if address == "local":
            settings |= {**_LOCAL_SETTINGS, "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        for name, value in settings.items():
            os.environ.setdefault(name, value)
        try:
            import ray  # noqa: PLC0415  an extra
            import ray.data  # noqa: PLC0415
        except ImportError as error:
            raise SetupError(
                f"{named('engine', 'ray')} needs Ray: {install('ray')} ({error})"
            ) from error
        options: dict[str, Any] = {}
        if address == "local":
            cpus = max(os.cpu_count() or 1, workers) + _LOCAL_SPARE
            options = {"num_cpus": cpus, "include_dashboard": False}
        logging.disable(logging.WARNING)  # Ray sets its levels anew with each job
        _check_address(address)
        connect(ray, address, options)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        self._ray = ray
        self._since_s = time.time()
        self._job: threading.Thread | None = None
        self.address = address

    @property
    def resources(self) -> Mapping[str, float]:
        """The resources of the cluster: `CPU`, `GPU`, `memory` and others."""
        return dict(self._ray.cluster_resources())

    @property
    def nodes(self) -> int:
        """Machines that are alive."""
        return sum(1 for node in self._ray.nodes() if node["Alive"])

    @property
    def logs(self) -> Path:
        """Folder of Ray's logs, on each machine of the cluster."""
        session = str(self._ray.get_runtime_context().get_session_name())
        return Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / session / "logs"  # noqa: S108

    def log_lines(self) -> Iterator[str]:
        """Lines of the workers' logs on this machine since the connection, with single spaces."""
        for path in sorted(self.logs.glob("worker-*")):
            with suppress(OSError), path.open("rb") as file:
                if path.stat().st_mtime >= self._since_s:
                    for line in file:
                        yield " ".join(line.decode(errors="replace").split())

    async def call(
        self, actor: type[Any], order: Any, method: str, *arguments: Any, gpus: float = 0.0
    ) -> Any:
        """The result of one method of an actor that exists only for this call."""
        remote = self._ray.remote(num_cpus=1, num_gpus=gpus)(actor).remote(order)
        try:
            return await asyncio.wrap_future(getattr(remote, method).remote(*arguments).future())
        except self._ray.exceptions.RayError as error:
            raise StopRunError(f"a worker of Ray failed: {_line(error)}") from error
        finally:
            self._ray.kill(remote)

    async def answers(
        self, asked: Iterable[SampleRow], pipeline: Callable[[Any], Any]
    ) -> AsyncIterator[list[ResultRow]]:
        """The results of the samples, block by block as blocks finish, in any order. `pipeline`
        makes the dataset of results from that of the samples.

        Raises:
            JobError: the job ended before all results came back.
            StopRunError: a result is not one that our workers send.
        """
        arrived: asyncio.Queue[list[ResultRow] | BaseException | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        blocks = [self._ray.put(table) for table in tables(asked)]

        def give(item: list[ResultRow] | BaseException | None) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(arrived.put_nowait, item)

        def work() -> None:
            try:
                back = pipeline(self._ray.data.from_arrow_refs(blocks))
                for table in back.iter_batches(
                    batch_size=None, batch_format="pyarrow", prefetch_batches=0
                ):
                    give(read_table(table))
            except BaseException as error:  # noqa: BLE001  raised where the job is waited for
                give(error)
            else:
                give(None)

        if blocks:
            self._job = threading.Thread(target=work, name="ray-job", daemon=True)
            self._job.start()
            while (item := await arrived.get()) is not None:
                if isinstance(item, StopRunError):
                    raise item
                if isinstance(item, BaseException):
                    raise JobError(_line(item)) from item
                yield item

    def close(self) -> None:
        """Ends a running job, and a cluster that was started here."""
        logging.disable(logging.CRITICAL)  # a job that is ended says so with a traceback
        self._end_job()
        self._ray.shutdown()
        logging.disable(logging.NOTSET)

    def _end_job(self) -> None:
        """Ends the threads of a running job. Ray ends the whole process, with exit code 1, if one
        of them calls it after `shutdown`.
        """
        if self._job is None or not self._job.is_alive():
            return
        for thread in threading.enumerate():
            # Ray Data has no public way to stop a job whose next block is far away
            if type(thread).__name__ == "StreamingExecutor":
                with suppress(Exception):
                    cast("Any", thread).shutdown(force=True)
        self._job.join(_END_S)


def _check_address(address: str) -> None:
    """Raises `SetupError` if nothing listens at an address; Ray would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise SetupError(f"no Ray cluster at {address}: {error}") from error


@contextmanager
def _quiet_stderr() -> Iterator[None]:
    """Drops what C++ code prints despite its log level. Errors of Ray are exceptions."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _line(error: BaseException) -> str:
    """An error of Ray in one line: the last line of its traceback."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    text = lines[-1] if lines else type(error).__name__
    return redact(" ".join(text.split()))[:_ERROR_CHARS]
