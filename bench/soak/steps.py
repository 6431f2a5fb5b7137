"""What happens in a session of the soak: each step asks, disturbs or breaks something, and checks what it is told."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import signal
from collections.abc import Awaitable, Callable

from bench.sessions import KERNEL
from bench.soak.session import WAIT_S, SoakSession
from bench.soak.tally import KILLED_INSIDE, KILLED_OUTSIDE
from workbench.errors import Cancelled, KernelUnavailable, NotFound, SandboxUnavailable
from workbench.model.execution import Outcome
from workbench.wire import host as wire
from workbench.wire import kernels

Step = Callable[[SoakSession], Awaitable[None]]
_SLEEP = "import time; print('begun', flush=True); time.sleep(300)"
_TIME: dict[str, object] = {"time": "module"}


async def variables_carry_over(s: SoakSession) -> None:
    """A value is there in the next cell, and in the list of variables."""
    name, value = f"v{s.luck.randint(1, 6)}", s.luck.randint(0, 10**6)
    await s.cell(f"{name} = {value}", {name: value})
    result = await s.cell(f"{name} + 1")
    s.expect("a variable", result.results.text, str(value + 1))
    listed = await s.ask(kernels.ListVariables(sandbox=s.sandbox, kernel=KERNEL), kernels.VariableList)
    s.expect("the list of variables", {one.name for one in listed.variables}, set(s.memory.names))


async def all_variables(s: SoakSession) -> None:
    """Every number that the model has is in the memory, and no other."""
    numbers = {name: value for name, value in sorted(s.memory.names.items()) if isinstance(value, int)}
    code = "print({n: v for n, v in sorted(globals().items()) if type(v) is int and not n.startswith('_')}, end='')"
    result = await s.cell(code)
    s.expect("all numbers of the memory", result.stdout.text, repr(numbers))


async def arithmetic(s: SoakSession) -> None:
    """A value of its own."""
    a, b = s.luck.randint(1, 10**9), s.luck.randint(1, 10**9)
    s.expect("a product", (await s.cell(f"{a} * {b}")).results.text, str(a * b))


async def printed(s: SoakSession) -> None:
    """Both streams, with text that is not ASCII."""
    text = "".join(s.luck.choice("abc äöü 漢字 🙂\n") for _ in range(s.luck.randint(1, 200)))
    code = f"import sys; print({text!r}, end=''); print({text[::-1]!r}, end='', file=sys.stderr)"
    result = await s.cell(code, {"sys": "module"})
    s.expect("stdout", result.stdout.text, text)
    s.expect("stderr", result.stderr.text, text[::-1])


async def long_output(s: SoakSession) -> None:
    """More than a result shows: counted, and whole in a file."""
    lines = s.luck.randint(10_000, 60_000)
    text = "".join(f"{number:08d}\n" for number in range(lines))
    result = await s.cell(f"print('\\n'.join(f'{{n:08d}}' for n in range({lines})))")
    s.expect("characters of a long output", result.stdout.characters, len(text))
    s.expect("lines of a long output", result.stdout.lines, lines)
    told = await s.command(f"sha256sum < {result.stdout.file_path}")
    s.expect("a whole output in its file", told.stdout.text[:64], hashlib.sha256(text.encode()).hexdigest())


async def displayed(s: SoakSession) -> None:
    """Something rich."""
    token = secrets.token_hex(8)
    code = f"from IPython.display import HTML, display; display(HTML('<b>{token}</b>'))"
    result = await s.cell(code, {"HTML": "class", "display": "function"})
    s.expect("a display", [one.data.get("text/html") for one in result.displays], [f"<b>{token}</b>"])


async def raised(s: SoakSession) -> None:
    """An error of the code's own, which changes nothing."""
    result = await s.cell(f"1 / 0  # {s.luck.random()}", outcome=Outcome.RAISED)
    s.expect(
        "an error",
        result.error and (result.error.name, result.error.message),
        ("ZeroDivisionError", "division by zero"),
    )


async def left(s: SoakSession) -> None:
    """exit() ends the cell alone."""
    await s.cell("exit()")


async def frames(s: SoakSession) -> None:
    """pandas and numpy."""
    rows = s.luck.randint(1, 5000)
    code = f"import pandas as pd, numpy as np; df = pd.DataFrame({{'a': np.arange({rows})}}); int(df.a.sum())"
    result = await s.cell(code, {"pd": "module", "np": "module", "df": object()})
    s.expect("a sum of a frame", result.results.text, str(rows * (rows - 1) // 2))


async def files_are_kept(s: SoakSession) -> None:
    """In both folders, for cells and commands, also after the kernel was lost."""
    folder, name, token = s.luck.choice(("/mnt/files", "/home/user")), f"f{s.luck.randint(1, 3)}", secrets.token_hex(8)
    path = f"{folder}/{name}"
    if s.luck.random() < 0.5:
        await s.cell(f"len(open({path!r}, 'w').write({token!r}) * 'x')")
    else:
        await s.command(f"printf %s {token} > {path}")
    s.files[path] = token
    for path, token in s.files.items():
        s.expect(f"{path} by bash", (await s.command(f"cat {path}")).stdout.text, token)
    s.expect(f"{path} by Python", (await s.cell(f"print(open({path!r}).read(), end='')")).stdout.text, token)


async def commanded(s: SoakSession) -> None:
    """Exit codes, both streams, and something left in the background."""
    code = s.luck.randint(0, 99)
    result = await s.command(f"sleep 600 & echo out; echo err >&2; exit {code}")
    seen = (result.exit_code, result.stdout.text, result.stderr.text)
    s.expect("a command", seen, (code, "out\n", "err\n"))
    found = await s.ask(kernels.ListProcesses(sandbox=s.sandbox), kernels.ProcessList)
    s.expect("what is in the background", any("sleep" in one.command for one in found.processes), True)


async def queued(s: SoakSession) -> None:
    """Cells that are sent together run in the order they were sent."""
    if s.memory.is_dying:
        return
    first = s.luck.randint(0, 1000)
    codes = (f"q = {first}", "q = q + 1", "q = q * 2", "q")
    reports = await asyncio.gather(*(s.ask(s.cell_request(code), kernels.CellReport) for code in codes))
    results = [s.ended(report) for report in reports]
    values = (first, first + 1, (first + 1) * 2)
    for code, result, value in zip(codes, results, (*values, None), strict=True):
        s.check(code, result, {"q": value} if value is not None else {}, Outcome.OK)
    s.expect("the last of a queue", results[-1].results.text, str(values[-1]))


async def client_away(s: SoakSession) -> None:
    """Whoever asked goes away in the middle; the cell goes on, and another client has all of its output."""
    await s.cell("import time", _TIME)
    lines = s.luck.randint(1, 300)
    code = f"print('begun')\nfor line in range({lines}):\n    print(line)\n    time.sleep(0.0005)"
    request = s.cell_request(code, wait_s=0)
    await s.begun(request)
    await s.leave()
    result = await s.end_of(request)
    s.check(code, result, {"line": lines - 1}, Outcome.OK)
    s.expect("output for another client", result.stdout.text, "begun\n" + "".join(f"{n}\n" for n in range(lines)))
    s.tally.done["clients gone in mid-cell"] += 1


async def interrupted(s: SoakSession) -> None:
    """By request: the cell ends, the memory stays."""
    await s.cell("pass")
    request = s.cell_request(_SLEEP, wait_s=0)
    await s.begun(request)
    await s.ask(kernels.InterruptKernel(sandbox=s.sandbox, kernel=KERNEL), wire.Done)
    s.check(request.code, await s.end_of(request), _TIME, Outcome.INTERRUPTED)
    s.tally.done["interrupts"] += 1


async def past_its_limit(s: SoakSession) -> None:
    """The same by the limit."""
    await s.cell(_SLEEP, _TIME, outcome=Outcome.TIMED_OUT, limit_s=0.5)
    s.tally.done["cells past their limit"] += 1


async def not_interruptible(s: SoakSession) -> None:
    """What takes no interrupt is ended with its kernel."""
    await s.cell("import time", _TIME)
    code = "while True:\n    try:\n        time.sleep(1)\n    except BaseException:\n        pass"
    s.lost(s.ended(await s.ask(s.cell_request(code, limit_s=0.3), kernels.CellReport)), Outcome.TIMED_OUT)
    s.tally.done["cells that took no interrupt"] += 1


async def restarted(s: SoakSession) -> None:
    """A new memory by request; sometimes under a running cell."""
    await s.cell("pass")
    request = s.cell_request(_SLEEP, wait_s=0)
    is_running = s.luck.random() < 0.3
    if is_running:
        await s.begun(request)
    report = await s.ask(kernels.RestartKernel(sandbox=s.sandbox, kernel=KERNEL), kernels.KernelReport)
    if is_running:
        s.lost(await s.end_of(request))
    else:
        s.memory.lose(told=False)
    s.expect("epoch after a restart", report.epoch, s.memory.epoch)
    s.tally.done["restarts"] += 1


async def killed_inside(s: SoakSession) -> None:
    """By its own code; what it printed before is there."""
    await s.cell("pass")
    code = "import os, signal; print('last words'); os.kill(os.getpid(), signal.SIGKILL)"
    if s.luck.random() < 0.3:
        code = "import os; print('last words'); os._exit(3)"
    result = s.ended(await s.ask(s.cell_request(code), kernels.CellReport))
    s.expect("output of a killed cell", result.stdout.text, "last words\n")
    s.lost(result)
    s.tally.done[KILLED_INSIDE] += 1


async def killed_outside(s: SoakSession) -> None:
    """While it waits for a cell, so that the next one finds out."""
    pid = await s.kernel_pid()
    if pid is None:
        s.expect("a kernel seen from outside", None, "a process")
        return
    os.kill(pid, signal.SIGKILL)
    s.memory.is_dying = True
    s.tally.done[KILLED_OUTSIDE] += 1
    if s.luck.random() < 0.5:
        await asyncio.sleep(s.luck.random() * 0.2)
    await s.cell("'v1' in globals()")


async def killed_running(s: SoakSession) -> None:
    """In the middle of a cell."""
    pid = await s.kernel_pid()
    if pid is None:
        s.expect("a kernel seen from outside", None, "a process")
        return
    request = s.cell_request(_SLEEP, wait_s=0)
    await s.begun(request)
    os.kill(pid, signal.SIGKILL)
    s.lost(await s.end_of(request))
    s.tally.done[KILLED_OUTSIDE] += 1


async def other_tier(s: SoakSession) -> None:
    """Larger and smaller, under a live kernel."""
    tier = s.luck.choice(("standard", "medium"))
    report = await s.ask(wire.ChangeTier(sandbox=s.sandbox, tier=tier), wire.SandboxReport)
    s.expect("a tier", report.tier, tier)
    s.tally.done["tier changes"] += 1


async def closed_in_mid_cell(s: SoakSession) -> None:
    """The last step of a session: whoever waits is told."""
    await s.cell("pass")
    request = s.cell_request(_SLEEP, wait_s=0)
    await s.begun(request)
    wait = kernels.WaitCell(sandbox=s.sandbox, cell=request.cell, wait_s=WAIT_S)
    answers = await asyncio.gather(s.ask(wait, kernels.CellReport), s.close(), return_exceptions=True)
    match answers[0]:
        case kernels.CellReport():
            s.expect("outcome of a cell in a closed sandbox", s.ended(answers[0]).outcome, Outcome.LOST)
        case Cancelled() | SandboxUnavailable() | KernelUnavailable() | NotFound():
            pass
        case BaseException() as problem:
            raise problem
    if isinstance(answers[1], BaseException):
        raise answers[1]
    s.tally.done["sandboxes closed in mid-cell"] += 1


# How often each is taken.
STEPS: tuple[tuple[Step, int], ...] = (
    (variables_carry_over, 12), (all_variables, 6), (arithmetic, 10), (printed, 8), (displayed, 5), (raised, 5),
    (left, 2), (frames, 6), (files_are_kept, 6), (commanded, 4), (queued, 5), (long_output, 2), (interrupted, 3),
    (past_its_limit, 2), (not_interruptible, 1), (restarted, 3), (killed_inside, 4), (killed_outside, 5),
    (killed_running, 2), (other_tier, 3), (client_away, 3),
)  # fmt: skip
