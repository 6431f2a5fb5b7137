"""`workbench kernel`: a session as a kernel that Jupyter starts and ends, and the kernelspec that says so."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from workbench.cli.outcome import EXIT_LOST
from workbench.cli.printing import notice
from workbench.cli.running import Place, Wanted, run_in_session, runtime_option, session_option, tier_option
from workbench.core.languages import Languages
from workbench.core.requests import AttachKernel, RestartKernel
from workbench.kernels.bridge import Bridge, Endpoints
from workbench.model.runtime import PYTHON, Runtime
from workbench.settings import Settings
from workbench.wiring import runtimes_of

_LOOK_S = 1.0


@click.command()
@click.option(
    "-f", "--connection-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="Serve the addresses that this connection file of Jupyter's names.",
)  # fmt: skip
@session_option
@runtime_option
@tier_option
@click.option("--install", is_flag=True, help="Write a kernelspec for Jupyter instead, and say where.")
@click.option(
    "--prefix",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="With --install: DIR/share/jupyter.",
)
@click.pass_obj
def kernel(
    settings: Settings,
    connection_file: Path | None,
    name: str | None,
    runtime: str | None,
    tier: str | None,
    install: bool,
    prefix: Path | None,
) -> None:
    """Be the kernel that Jupyter started: a session of its own, deleted when Jupyter ends the kernel."""
    if install == (connection_file is not None) or (prefix is not None and not install):
        raise click.UsageError("give either -f FILE, or --install with or without --prefix DIR")
    if connection_file is None:
        language = Languages(runtimes_of(settings)).named(runtime or PYTHON)
        click.echo(f"kernelspec: {_install(prefix or Path.home() / '.local', language)}")
        return
    near = Endpoints.from_file(connection_file)

    with contextlib.ExitStack() as until_it_is_deleted:

        async def serve(place: Place) -> int:
            if not place.stays:
                until_it_is_deleted.enter_context(_deleted_even_if_we_are_killed(place))
            return await _serve(place, near, parent_matters="JPY_PARENT_PID" in os.environ)

        code = run_in_session(settings, Wanted(name=name, runtime=runtime, tier=tier), serve)
    sys.exit(code)


def _install(prefix: Path, language: Runtime) -> Path:
    named = "workbench" if language.name == PYTHON else f"workbench-{language.name}"
    folder = prefix / "share/jupyter/kernels" / named
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "kernel.json"
    path.write_text(json.dumps(_spec(language), indent=2) + "\n", encoding="utf-8")
    return path


def _spec(language: Runtime) -> dict[str, object]:
    of_language = [] if language.name == PYTHON else ["--runtime", language.name]
    return {
        "argv": [sys.executable, "-m", "workbench", "kernel", *of_language, "-f", "{connection_file}"],
        "display_name": f"{language.title} (workbench)",
        "language": language.language,
        "interrupt_mode": "message",
    }


async def _serve(place: Place, near: Endpoints, *, parent_matters: bool) -> int:
    point = await place.bench.attach_kernel(AttachKernel(session=place.session))
    bridge = Bridge(near, Endpoints.from_info(point.info))
    try:
        await bridge.open()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, bridge.interrupt)
        if not await _until_over(bridge, Path(point.connection_file), os.getppid() if parent_matters else None):
            notice(f"session {place.session} has lost its sandbox, and with it this kernel")
            return EXIT_LOST
        if bridge.restarts and place.stays:
            await place.bench.restart_kernel(RestartKernel(session=place.session))
        return 0
    finally:
        await bridge.aclose()


async def _until_over(bridge: Bridge, door: Path, parent: int | None) -> bool:
    """Whether somebody wanted it to end, or who wanted it is gone; False if the kernel has nobody to serve it."""
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await bridge.asked_to_end.wait()
                return True
        if parent is not None and os.getppid() != parent:
            return True
        if not _is_there(door):
            return False


def _is_there(door: Path) -> bool:
    return door.exists()


@contextlib.contextmanager
def _deleted_even_if_we_are_killed(place: Place) -> Iterator[None]:
    """Jupyter's last resort is SIGKILL. Who waits at the end of a pipe then notices, and deletes the session."""
    remove = (sys.executable, "-m", "workbench", "sessions", "rm", place.session)
    watcher = subprocess.Popen(
        ["/bin/sh", "-c", 'read -r line || exec "$@"', "sh", *remove],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):
            watcher.communicate(b"never mind\n")
