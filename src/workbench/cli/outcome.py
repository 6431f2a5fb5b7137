"""Exit codes that scripts can use, and the line that names what a process met."""

from __future__ import annotations

from workbench.wire.host import ProcessReport

# As `env`, `timeout` and shells have them, so that scripts need not learn new ones.
EXIT_TIME_LIMIT = 124
EXIT_OURS = 125
EXIT_LOST = 126
EXIT_ENDED = 128 + 15
_SIGNAL_BASE = 128


def exit_code(report: ProcessReport, *, timed_out: bool) -> int:
    """The process's own code, or ours when it has none."""
    if timed_out:
        return EXIT_TIME_LIMIT
    if report.lost:
        return EXIT_LOST
    if report.signal is not None:
        return _SIGNAL_BASE + report.signal
    return report.code or 0


def remarks(report: ProcessReport, *, timed_out: bool, limit_s: float) -> list[str]:
    """What the reader must know beyond the output; each is one line."""
    said = []
    if timed_out:
        said.append(f"time limit of {limit_s:g} s reached: the code was ended; --timeout sets another")
    if report.lost:
        said.append(f"the sandbox ended under the code: {report.reason}")
    elif report.signal is not None and not timed_out:
        said.append(f"the code was ended by signal {report.signal}")
    said.extend(f"limit met: {limit.value}; --tier chooses a larger size" for limit in report.limits)
    return said
