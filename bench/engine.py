"""What a sandbox costs: from the pool, without one, in memory, a hundred at once; beside bubblewrap and the floor.

python bench/engine.py [--quick] [--write bench/RESULTS.md]
"""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import subprocess
import sys
import time

from bench.command import main
from bench.hosts import close, host, middle_of_three, slope_mib, until_pooled
from bench.table import Row, p50, spread
from workbench.host_client.connection import HostConnection
from workbench.images.build import find_image
from workbench.images.recipe import load_recipe
from workbench.model.ids import new_process_id, new_sandbox_id
from workbench.model.image import Image
from workbench.model.process import Stream
from workbench.settings import Settings
from workbench.wire import host as wire

ANSWER = b"import pandas, numpy, matplotlib.pyplot; import os; os.write(1, b'%d' % (6 * 7))"
_FORK_FLOOR = """
import importlib, os, sys, time, gc
for name in sys.argv[2:]: importlib.import_module(name)
gc.collect(); gc.freeze()
times = []
for _ in range(int(sys.argv[1])):
    began = time.perf_counter()
    pid = os.fork()
    if pid == 0: os._exit(0)
    times.append((time.perf_counter() - began) * 1000)
    os.waitpid(pid, 0)
print(sorted(times)[len(times) // 2])
"""


async def first_answer(connection: HostConnection) -> tuple[float, str]:
    """Milliseconds from asking for a sandbox to the first byte from inside it; and the sandbox, to close."""
    sandbox, process = new_sandbox_id(), new_process_id()
    began = time.perf_counter()
    await connection.ask(wire.CreateSandbox(sandbox=sandbox), wire.SandboxReport)
    await connection.ask(
        wire.StartProcess(sandbox=sandbox, process=process, entry="run_code", payload=ANSWER), wire.ProcessReport
    )
    piece = await connection.ask(
        wire.ReadOutput(sandbox=sandbox, process=process, stream=Stream.STDOUT, wait_s=30.0), wire.OutputReport
    )
    took = (time.perf_counter() - began) * 1000
    if piece.data != b"42":
        raise AssertionError(f"a wrong answer: {piece.data!r}")
    return took, sandbox


def bubblewrap(image: Image) -> float | None:
    """The peer at its documented best: all namespaces, then a cold interpreter with the same imports."""
    tool = shutil.which("bwrap")
    if tool is None:
        return None
    roots = [option for root in image.roots if not root.startswith("/usr") for option in ("--ro-bind", root, root)]
    links = [
        o for p in ("/bin", "/lib", "/lib64", "/sbin") if os.path.islink(p) for o in ("--symlink", os.readlink(p), p)
    ]
    env = [option for name, value in image.env for option in ("--setenv", name, value)]
    began = time.perf_counter()
    done = subprocess.run(
        [tool, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", *env, "--ro-bind", "/usr", "/usr",
         *links, *roots, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
         image.python, "-I", "-c", ANSWER.decode()],
        capture_output=True, check=True, timeout=120)  # fmt: skip
    assert done.stdout == b"42", done
    return (time.perf_counter() - began) * 1000


def fork_floor(image: Image, count: int) -> float:
    """A bare fork of a process with the same imports: nothing forked can be faster."""
    env = {**dict(image.env), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [image.python, "-I", "-c", _FORK_FLOOR, str(count), *image.preload], env=env, capture_output=True, text=True,
        check=True, timeout=120)  # fmt: skip
    return float(done.stdout)


def unshare_floor(count: int) -> float:
    """A bare `unshare` of all namespaces around `true`, less the same `true` without."""
    tool = shutil.which("unshare")
    if tool is None:
        return float("nan")
    with_it: list[float] = []
    without: list[float] = []
    for _ in range(count):
        for samples, command in (
            (with_it, [tool, "-U", "-r", "-m", "-p", "-n", "-i", "-u", "-C", "--fork", "/bin/true"]),
            (without, [tool, "/bin/true"]),
        ):
            began = time.perf_counter()
            subprocess.run(command, check=False, capture_output=True, timeout=30)
            samples.append((time.perf_counter() - began) * 1000)
    return p50(with_it) - p50(without)


async def memory_slope_mib(settings: Settings, count: int) -> float:
    """What one more sandbox costs."""
    async with host(settings, pool_size=0) as connection:
        for _ in range(5):
            _, sandbox = await first_answer(connection)
            await close(connection, sandbox)
        gc.collect()
        made: list[str] = []

        async def make_one() -> None:
            made.append(new_sandbox_id())
            await connection.ask(wire.CreateSandbox(sandbox=made[-1]), wire.SandboxReport)

        slope = await slope_mib(make_one, count)
        await asyncio.gather(*(close(connection, sandbox) for sandbox in made))
    return slope


async def steady_memory_slope_mib(settings: Settings, count: int) -> float:
    """The middle of three."""
    return await middle_of_three(lambda: memory_slope_mib(settings, count))


async def at_once(settings: Settings, count: int) -> tuple[int, float]:
    """How many of `count` asked for together answered, and how long the last one took."""
    async with host(settings) as connection:
        began = time.perf_counter()
        results = await asyncio.gather(*(first_answer(connection) for _ in range(count)), return_exceptions=True)
        took = time.perf_counter() - began
        good = [result for result in results if isinstance(result, tuple)]
        await asyncio.gather(*(close(connection, sandbox) for _, sandbox in good))
    return len(good), took


async def latency(settings: Settings, image: Image, n: int) -> tuple[list[float], list[float], list[float]]:
    """Pooled, unpooled and bubblewrap, interleaved so that noise falls on all alike."""
    pooled: list[float] = []
    unpooled: list[float] = []
    peer: list[float] = []
    async with host(settings, pool_size=2) as warm, host(settings, pool_size=0) as cold:
        for _ in range(n):
            for samples, connection in ((pooled, warm), (unpooled, cold)):
                # The warm host refills its pool in the background; neither sample is to be measured on top of that.
                await until_pooled(warm)
                took, sandbox = await first_answer(connection)
                samples.append(took)
                await close(connection, sandbox)
            if (other := bubblewrap(image)) is not None:
                peer.append(other)
    return pooled, unpooled, peer


async def measure(settings: Settings, *, quick: bool) -> list[Row]:
    """All rows."""
    image = find_image(settings.images_dir, load_recipe("python"))
    n, many = (5, 20) if quick else (30, 100)
    pooled, unpooled, peer = await latency(settings, image, n)
    fork, unshare = fork_floor(image, n), unshare_floor(n)
    ratio = p50(peer) / p50(pooled) if peer else float("nan")
    floor = f"floor: bare fork of the warm process {fork:.1f} ms, bare unshare {unshare:.1f} ms"
    rows = [
        Row(
            what="isolated sandbox from the pool to its first answer, against bwrap and cold python",
            seen=f"{spread(pooled)} against {spread(peer) if peer else 'no bwrap here'}: {ratio:.0f} times faster",
            must="40 times faster", aim="10 ms", passed=ratio >= 40, aimed=p50(pooled) <= 10,
            notes=f"{floor}; {p50(pooled) / fork:.1f} times the fork, which the pool has paid before",
        ),
        Row(
            what="the same with an empty pool",
            seen=spread(unpooled), must="25 ms", aim="15 ms",
            passed=p50(unpooled) <= 25, aimed=p50(unpooled) <= 15,
            notes=f"two forks and one set of namespaces are needed: {2 * fork + unshare:.1f} ms of floor",
        ),
    ]  # fmt: skip
    slope = await steady_memory_slope_mib(settings, many)
    rows.append(Row(
        what=f"private memory a sandbox adds (slope of MemAvailable over {many})",
        seen=f"{slope:.2f} MB", must="6 MB", aim="4 MB", passed=slope <= 6, aimed=slope <= 4, fatal=True,
        notes="pid 1 and a forked interpreter that waits, with page tables and kernel objects",
    ))  # fmt: skip
    good, took = await at_once(settings, many)
    rows.append(Row(
        what=f"{many} sandboxes at once, each answering",
        seen=f"{good} of {many} in {took:.2f} s", must=f"{many} of {many}", aim="under 3 s",
        passed=good == many, aimed=good == many and took < 3, fatal=True,
        notes=f"{many / took:.0f} a second; the floor is two forks each on {os.cpu_count()} CPUs: "
              f"{many * 2 * fork / 1000 / (os.cpu_count() or 1):.2f} s",
    ))  # fmt: skip
    return rows


if __name__ == "__main__":
    sys.exit(main("Engine", __doc__, measure))
