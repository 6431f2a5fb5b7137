"""The server process: where it listens, with which certificate, and how it comes to its end.

What runs in sandboxes is the host's: stopping the server, or killing it, ends none of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from types import FrameType

import uvicorn
import uvloop
from fastapi import FastAPI

from workbench.errors import InvalidSetting
from workbench.mcp.families import chosen_families
from workbench.model.ids import DEFAULT_PROJECT
from workbench.server.addresses import is_loopback
from workbench.server.app import make_app
from workbench.server.connection import Connection, raise_file_limit
from workbench.server.door import Door
from workbench.server.logs import JsonHandler, Log
from workbench.server.service import ServerOptions, Service
from workbench.settings import Settings

OpenService = Callable[[], AbstractAsyncContextManager[Service]]
Started = Callable[[str], None]

_BACKLOG = 2048
# Longer than the proxies that people put in front of it, which must not meet a connection that is just being closed.
_KEEP_ALIVE_S = 75
# Awaited requests have ten seconds of their own; what is left after these is closed.
_GRACEFUL_S = 13
_LAST_WORDS_S = 3.0


def run_server(open_service: OpenService, settings: Settings, *, started: Started, log: Log | None = None) -> None:
    """Serve until SIGTERM or SIGINT. `started` is told the URL once requests are taken.

    Raises:
        InvalidSetting: where or how it is to listen cannot be, with the setting to change.
    """
    log = log or Log(settings.log_level)
    raise_file_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, _libraries_told(log):
        runner.run(serve(open_service, settings, started=started, log=log))


async def serve(open_service: OpenService, settings: Settings, *, started: Started, log: Log) -> None:
    """The same within a loop that runs already; until it is cancelled or, in the main thread, a signal comes."""
    check_address(settings)
    context = tls_context(settings)
    with contextlib.closing(_bound(settings)) as listening:
        port: int = listening.getsockname()[1]
        url = settings.public_url or local_url(settings.listen_host, port, secure=context is not None)
        async with open_service() as service:
            app = make_app(service, _options(settings, url, log, service.workbench(DEFAULT_PROJECT).languages.names))
            server = _Server(_config(settings, app, context), app.state.door, lambda: started(url))
            log.event("info", "server.start", port=port)
            await server.serve(sockets=[listening])
            log.event("info", "server.stop")


def check_address(settings: Settings) -> None:
    """Raises: InvalidSetting for an address that others reach, without TLS and without having been told so."""
    # BARRIER: keys would travel in the clear; held by tests/server/test_serving.py.
    if is_loopback(settings.listen_host) or settings.tls_cert or settings.allow_plain_http:
        return
    raise InvalidSetting(
        f"WORKBENCH_LISTEN_HOST={settings.listen_host} is reached by others, and without TLS keys and code would be "
        "sent in the clear: set WORKBENCH_TLS_CERT and WORKBENCH_TLS_KEY; or listen at 127.0.0.1 behind a proxy that "
        "has a certificate; or, in a network that you trust, set WORKBENCH_ALLOW_PLAIN_HTTP=true",
        {"setting": "WORKBENCH_LISTEN_HOST"},
    )


def local_url(host: str, port: int, *, secure: bool) -> str:
    """By which this machine reaches it."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        shown = host
    else:
        if address.is_unspecified:
            address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
        shown = f"[{address}]" if address.version == 6 else str(address)
    return f"{'https' if secure else 'http'}://{shown}:{port}"


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """With the certificate, if one is set.

    Raises:
        InvalidSetting: one of both is missing, or a file cannot be used.
    """
    cert, key = settings.tls_cert, settings.tls_key
    if not cert and not key:
        return None
    if not cert or not key:
        missing = "WORKBENCH_TLS_KEY" if cert else "WORKBENCH_TLS_CERT"
        raise InvalidSetting(f"TLS needs a certificate and its key: set {missing} as well", {"setting": missing})
    for name, path in (("WORKBENCH_TLS_CERT", cert), ("WORKBENCH_TLS_KEY", key)):
        try:
            with open(path, "rb"):
                pass
        except OSError as problem:
            raise InvalidSetting(f"{name}={path} cannot be read: {problem.strerror}", {"setting": name}) from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # A key with a pass phrase would be asked for at a terminal that is not there.
        context.load_cert_chain(cert, key, password=lambda: "")
    except (ssl.SSLError, ValueError) as problem:
        why = getattr(problem, "reason", None) or "the key has a pass phrase, or is none"
        raise InvalidSetting(
            f"WORKBENCH_TLS_CERT={cert} and WORKBENCH_TLS_KEY={key} are no certificate in PEM and its private key "
            f"without a pass phrase: {why}",
            {"setting": "WORKBENCH_TLS_CERT"},
        ) from None
    return context


def _bound(settings: Settings) -> socket.socket:
    host, port = settings.listen_host, settings.listen_port
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
        )[0]
    except socket.gaierror as problem:
        raise InvalidSetting(
            f"WORKBENCH_LISTEN_HOST={host} is no address of this machine: {problem.strerror}",
            {"setting": "WORKBENCH_LISTEN_HOST"},
        ) from None
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as problem:
        bound.close()
        raise InvalidSetting(
            f"cannot listen at {host} port {port}: {problem.strerror}; set WORKBENCH_LISTEN_PORT to another port, or "
            "0 for one that is free",
            {"setting": "WORKBENCH_LISTEN_PORT"},
        ) from None
    return bound


def _options(settings: Settings, url: str, log: Log, runtimes: tuple[str, ...] = ()) -> ServerOptions:
    return ServerOptions(
        url=url,
        public_url=settings.public_url,
        links_url=settings.links_url,
        max_body_bytes=settings.max_body_mib * 1024 * 1024,
        cell_limit_max_s=settings.cell_limit_max_s,
        runtimes=runtimes,
        # Behind a proxy everybody comes from this machine.
        metrics_open=is_loopback(settings.listen_host) and not settings.public_url and not settings.trusted_proxies,
        families=chosen_families(settings.mcp_tools),
        names=own_names(settings),
        log=log,
    )


def own_names(settings: Settings) -> frozenset[str] | None:
    """By which clients may ask. Where others reach it and nobody said by which name, keys alone protect."""
    if not is_loopback(settings.listen_host) and not settings.public_url:
        return None
    public = urllib.parse.urlsplit(settings.public_url).hostname if settings.public_url else None
    return frozenset({settings.listen_host.lower(), public or "localhost"})


def _config(settings: Settings, app: FastAPI, context: ssl.SSLContext | None) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACEFUL_S,
        # Whoever is not named could say anything about where a request came from.
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies or None,
    )
    config.load()
    config.ssl = context
    return config


class _Server(uvicorn.Server):
    """uvicorn's, which tells us when it begins and when it is about to end."""

    def __init__(self, config: uvicorn.Config, door: Door, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._door = door
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, and then it is said."""
        await super().startup(sockets)
        if self.started:
            self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """First streams are told, so that connections come to their ends."""
        self._door.stopping.set()
        await super().shutdown(sockets)
        # Those that had to be cancelled say so to their callers, and need the store for it, which is closed next.
        if (tasks := set(self.server_state.tasks)) and not self.force_exit:
            await asyncio.wait(tasks, timeout=_LAST_WORDS_S)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """As uvicorn's own, which a library replaces by one that breaks off every stream at once."""
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        else:
            self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn sends itself the signal again at the end, which would end us before everything is closed."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


@contextlib.contextmanager
def _libraries_told(log: Log) -> Iterator[None]:
    """What libraries warn of goes where our own events go."""
    root, handler = logging.getLogger(), JsonHandler(log)
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
