"""What files by links cost: a large one up and down beside nginx, the server's memory meanwhile, many small ones.

python -m bench.files [--quick] [--write bench/RESULTS.md]
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.command import main
from bench.nginx import nginx, serving_folder
from bench.serving import Client, Serving, serving
from bench.table import Row, p50, spread
from workbench.settings import Settings

MB = 1_000_000
_PIECE = 8 * 1024 * 1024
_CURL_S = 300.0
_LOOK_S = 0.02
_SESSION = "bench"
_MOUNT = f"/v1/sessions/{_SESSION}/mounts/files"


@dataclass(slots=True)
class Seen:
    """Bytes a second of each way, taken in turns so that noise falls on all alike."""

    nginx_down: list[float] = field(default_factory=list)
    nginx_up: list[float] = field(default_factory=list)
    down: list[float] = field(default_factory=list)
    up: list[float] = field(default_factory=list)
    grown_down_kib: int = 0
    grown_up_kib: int = 0
    right: list[bool] = field(default_factory=list)
    """whether what came, up and then down, is what was sent"""


class Files:
    """The files of the one session, by REST."""

    def __init__(self, client: Client, address: str) -> None:
        self._client = client
        self._address = address

    async def ask(self, call: str, **body: object) -> Any:
        """One of the calls; its answer."""
        answer = await self._client.ask("POST", f"{_MOUNT}/{call}", body)
        if answer.status != 200:
            raise AssertionError(f"{call}: {answer}")
        return answer.json()

    async def url(self, call: str, path: str) -> str:
        """A link; our client asks without a port, and is told one without."""
        url: str = (await self.ask(call, path=path))["url"]
        return self._address + url[url.index("/files/") :]

    async def page(self, **query: str) -> Any:
        """Some of what is there."""
        text = "&".join(f"{name}={value}" for name, value in query.items())
        answer = await self._client.ask("GET", f"{_MOUNT}/items?{text}")
        if answer.status != 200:
            raise AssertionError(f"no page: {answer}")
        return answer.json()


async def curl(*arguments: str) -> float:
    """Bytes a second, as curl counts them."""
    process = await asyncio.create_subprocess_exec(
        "curl", "-sS", "--fail", "-o", os.devnull, "-w", "%{speed_download} %{speed_upload}", *arguments,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(_CURL_S):
        told, _ = await process.communicate()
    if process.returncode:
        raise AssertionError(f"curl ended with {process.returncode}")
    return max(float(part) for part in told.split())


@asynccontextmanager
async def _growth(server: Serving, seen: Seen, name: str) -> AsyncIterator[None]:
    """The most that the server's process held meanwhile, above what it held before."""
    before, most, over = server.memory_kib(), 0, False

    async def watch() -> None:
        nonlocal most
        while not over:
            most = max(most, server.memory_kib())
            await asyncio.sleep(_LOOK_S)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        over = True
        await watching
        setattr(seen, name, max(getattr(seen, name), most - before))


async def large(settings: Settings, size: int, rounds: int) -> tuple[Seen, bool]:
    """A large file, in rounds; whether nginx was there."""
    seen, program = Seen(), nginx()
    folder = Path(tempfile.mkdtemp(prefix="wb-bench-files-"))
    try:
        file = folder / "shown" / "large"
        digest = await asyncio.to_thread(_filled, file, size)
        async with _beside(program, folder) as peer, serving(settings, pool_size=1) as server:
            client = await server.client()
            try:
                await client.ask("POST", "/v1/sessions", {"id": _SESSION})
                files = Files(client, server.url)
                # The first round is not for speed, but what the server loads for it counts.
                first = Seen()
                await _round(server, files, peer, file, digest, first)
                seen.grown_down_kib, seen.grown_up_kib = first.grown_down_kib, first.grown_up_kib
                for _ in range(rounds):
                    await _round(server, files, peer, file, digest, seen)
            finally:
                await client.close()
    finally:
        await asyncio.to_thread(shutil.rmtree, folder)
    return seen, program is not None


@asynccontextmanager
async def _beside(program: str | None, folder: Path) -> AsyncIterator[str]:
    (folder / "shown" / "put").mkdir(exist_ok=True)
    if program is None:
        yield ""
        return
    async with serving_folder(program, folder / "shown", folder / "nginx") as address:
        yield address


async def _round(server: Serving, files: Files, peer: str, file: Path, digest: str, seen: Seen) -> None:
    up = await files.url("upload_url", "large")
    if peer:
        seen.nginx_down.append(await curl(f"{peer}/large"))
    async with _growth(server, seen, "grown_up_kib"):
        seen.up.append(await curl("-T", str(file), up))
    if peer:
        seen.nginx_up.append(await curl("-T", str(file), f"{peer}/put/large"))
        await asyncio.to_thread((file.parent / "put" / "large").unlink)
    down = await files.url("download_url", "large")
    async with _growth(server, seen, "grown_down_kib"):
        seen.down.append(await curl(down))
    seen.right.append(await _digest_of(down) == digest)
    # So that no round pays for the file of the one before.
    await files.ask("delete", path="large")


async def _digest_of(url: str) -> str:
    process = await asyncio.create_subprocess_exec("curl", "-sS", "--fail", url, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    digest = hashlib.sha256()
    while some := await process.stdout.read(_PIECE):
        digest.update(some)
    await process.wait()
    return digest.hexdigest()


def _filled(file: Path, size: int) -> str:
    digest = hashlib.sha256()
    file.parent.mkdir()
    file.parent.parent.chmod(0o755)
    with file.open("wb") as out:
        for start in range(0, size, _PIECE):
            some = os.urandom(min(_PIECE, size - start))
            digest.update(some)
            out.write(some)
    return digest.hexdigest()


@dataclass(slots=True)
class Small:
    """Milliseconds of each."""

    up: list[float] = field(default_factory=list)
    down: list[float] = field(default_factory=list)
    first_page: list[float] = field(default_factory=list)
    later_page: list[float] = field(default_factory=list)
    listed: int = 0


async def small(settings: Settings, n: int, many: int) -> Small:
    """Small files one after the other, and pages of many."""
    seen = Small()
    async with serving(settings, pool_size=1) as server:
        client = await server.client()
        try:
            await client.ask("POST", "/v1/sessions", {"id": _SESSION})
            files = Files(client, server.url)
            for number in range(n):
                for samples, method, call in ((seen.up, "PUT", "upload_url"), (seen.down, "GET", "download_url")):
                    url = await files.url(call, f"small/{number}")
                    path = url[url.index("/files/") :]
                    began = time.perf_counter()
                    answer = await client.ask(method, path, "x" * 1000 if method == "PUT" else None)
                    samples.append((time.perf_counter() - began) * 1000)
                    if answer.status not in (200, 201):
                        raise AssertionError(f"{method}: {answer}")
            code = (
                "import os\nos.mkdir('/mnt/files/many')\n"
                f"for i in range({many}): open(f'/mnt/files/many/{{i}}', 'w').close()"
            )
            made = await client.ask("POST", f"/v1/sessions/{_SESSION}/cells", {"code": code})
            if made.status != 200:
                raise AssertionError(f"no files: {made}")
            await _list_all(files, seen)
        finally:
            await client.close()
    return seen


async def _list_all(files: Files, seen: Small) -> None:
    cursor = ""
    while True:
        began = time.perf_counter()
        page = await files.page(prefix="many/", limit="500", **({"cursor": cursor} if cursor else {}))
        (seen.later_page if cursor else seen.first_page).append((time.perf_counter() - began) * 1000)
        seen.listed += len(page["items"])
        cursor = page["next_cursor"] or ""
        if not cursor:
            return


def _speed(samples: list[float]) -> str:
    return f"{p50(samples) / MB:,.0f} MB/s (min {min(samples) / MB:,.0f}, n {len(samples)})" if samples else "none"


def _speed_row(what: str, ours: list[float], seen: Seen, notes: str) -> Row:
    if not seen.nginx_down:
        return Row(
            what=what, seen=_speed(ours), must="half of nginx", aim="", passed=True, aimed=False,
            notes="nginx cannot be had here, so there is nothing to compare with",
        )  # fmt: skip
    # Of each round, as the machine is not equally busy in all of them.
    ratio = p50([one / other for one, other in zip(ours, seen.nginx_down, strict=True)])
    return Row(
        what=what, seen=f"{_speed(ours)} against {_speed(seen.nginx_down)} from nginx: {ratio:.2f} in the middle round",
        must="0.5", aim="0.8", passed=ratio >= 0.5, aimed=ratio >= 0.8, notes=notes,
    )  # fmt: skip


def _memory_row(what: str, grown_kib: int) -> Row:
    grown = grown_kib / 1024
    return Row(
        what=what, seen=f"{grown:.1f} MB at most", must="32 MB", aim="16 MB", passed=grown <= 32, aimed=grown <= 16,
        fatal=True, notes="RssAnon of its process, looked at 50 times a second",
    )  # fmt: skip


async def _large_rows(settings: Settings, size: int, rounds: int) -> list[Row]:
    seen, _ = await large(settings, size, rounds)
    gb = f"{size / 1e9:g} GB"
    right = all(seen.right)
    up_notes = f"curl -T, until it is on the disk; nginx takes it by PUT, without that, at {_speed(seen.nginx_up)}"
    return [
        _speed_row(f"{gb} down by a signed link, by curl", seen.down, seen, "sendfile in nginx, from the page cache"),
        _speed_row(f"{gb} up by a signed link, by curl", seen.up, seen, up_notes if seen.nginx_up else ""),
        _memory_row(f"memory the server adds for {gb} down", seen.grown_down_kib),
        _memory_row(f"memory the server adds for {gb} up", seen.grown_up_kib),
        Row(
            what=f"{gb} up and down again, by SHA-256", seen=f"{sum(seen.right)} of {len(seen.right)} the same",
            must="all", aim="", passed=right, aimed=right, fatal=True,
        ),
    ]  # fmt: skip


async def _small_rows(settings: Settings, n: int, many: int) -> list[Row]:
    seen = await small(settings, n, many)
    up, down, page = p50(seen.up), p50(seen.down), p50(seen.later_page or seen.first_page)
    complete = seen.listed == many
    return [
        Row(
            what="1 KB up by a signed link", seen=spread(seen.up), must="50 ms", aim="15 ms",
            passed=up <= 50, aimed=up <= 15, notes="until it is on the disk, file and folder",
        ),
        Row(
            what="1 KB down by a signed link", seen=spread(seen.down), must="10 ms", aim="3 ms",
            passed=down <= 10, aimed=down <= 3,
        ),
        Row(
            what=f"a page of 500 of {many:,} files in one folder", seen=spread(seen.later_page or seen.first_page),
            must="1,000 ms", aim="300 ms", passed=page <= 1000, aimed=page <= 300,
            notes=f"the folder is read anew for each; the first page {p50(seen.first_page):.0f} ms",
        ),
        Row(
            what=f"all pages of {many:,} files", seen=f"{seen.listed:,} told", must=f"{many:,}", aim="",
            passed=complete, aimed=complete, fatal=True,
        ),
    ]  # fmt: skip


async def measure(settings: Settings, *, quick: bool) -> list[Row]:
    """All rows."""
    if not shutil.which("curl"):
        raise SystemExit("bench.files needs curl: install it")
    return [
        *await _large_rows(settings, *((200 * MB, 2) if quick else (1000 * MB, 7))),
        *await _small_rows(settings, *((50, 5_000) if quick else (300, 100_000))),
    ]


if __name__ == "__main__":
    sys.exit(main("Files", __doc__, measure))
