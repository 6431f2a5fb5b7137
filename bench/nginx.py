"""nginx beside us: Debian's package, unpacked and not installed, that serves one folder on loopback for a while."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_START_S, _STOP_S = 20.0, 10.0
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
_SETTINGS = """daemon off; master_process off; worker_processes 1; pid {place}/pid; error_log {place}/errors.log;
events {{ worker_connections 64; }}
http {{
    access_log off; sendfile on; tcp_nopush on; client_max_body_size 0; {temporary}
    server {{ listen 127.0.0.1:{port}; root {folder}; location /put/ {{ dav_methods PUT; create_full_put_path on; }} }}
}}
"""


def nginx() -> str | None:
    """Its program, fetched if need be; None if it cannot be had."""
    if found := shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin"):
        return found
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "workbench-bench"
    program = cache / "nginx" / "usr" / "sbin" / "nginx"
    if program.exists():
        return str(program)
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return None
    fresh = cache / f"fresh-{os.getpid()}"
    try:
        fresh.mkdir(parents=True)
        _run(["apt-get", "-o", "APT::Sandbox::User=root", "download", "-qq", "nginx"], fresh)
        [package] = fresh.glob("nginx_*.deb")
        _run(["dpkg-deb", "-x", str(package), str(fresh / "unpacked")], fresh)
        _run([str(fresh / "unpacked" / "usr" / "sbin" / "nginx"), "-v"], fresh)
        os.rename(fresh / "unpacked", cache / "nginx")
    except (OSError, ValueError, subprocess.SubprocessError):
        return str(program) if program.exists() else None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return str(program)


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)


@asynccontextmanager
async def serving_folder(program: str, folder: Path, place: Path) -> AsyncIterator[str]:
    """Its address; it keeps what it needs in `place`, and takes uploads below /put/."""
    place.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    temporary = " ".join(f"{name}_temp_path {place}/{name};" for name in _TEMPORARY)
    settings = place / "nginx.conf"
    settings.write_text(_SETTINGS.format(place=place, port=port, folder=folder, temporary=temporary), encoding="ascii")
    process = await asyncio.create_subprocess_exec(
        program, "-p", str(place), "-c", str(settings), "-e", f"{place}/errors.log", stdin=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(_START_S):
            await _answers(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            async with asyncio.timeout(_STOP_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _answers(port: int, process: asyncio.subprocess.Process) -> None:
    while process.returncode is None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        await writer.wait_closed()
        return
    raise AssertionError(f"nginx ended with {process.returncode}")
