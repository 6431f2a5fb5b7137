"""One bash for all cells. It is interactive, without a terminal: an interrupt ends the cell, and not the shell."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import NamedTuple

from workbench_guest.memory_file import memory_file

# Far from what people use in scripts.
_CODE, _STATUS = 201, 202
_INTERRUPTED = 130
# `exit` and a failure under `set -e` end the cell, as an interrupt does, and not the shell with all that it knows.
_BEGIN = f"""\
set +mH; set +o history; unset HISTFILE; PROMPT_COMMAND=; declare +x PS1 PS2; shopt -u checkwinsize
__workbench_leave() {{ if ((BASHPID == $$)); then __workbench_status=$1; kill -INT $$; else builtin exit "$1"; fi; }}
exit() {{ __workbench_leave "${{1:-$?}}"; }}
set -E; trap '[[ $- != *e* ]] || __workbench_leave $?' ERR
exec 2>&{_STATUS + 1} {_STATUS + 1}>&-
"""
# The empty line: after a quote that was not closed the parser does not know a brace at the start of the next one.
_RUN = f'eval "$(</proc/self/fd/{_CODE})" </dev/null\n\n'
_TELL = (
    '{{ builtin printf "%s %s %s\\n" {number} "${{__workbench_status-$?}}" "${{__workbench_status+left}}" >&'
    f"{_STATUS}"
    "; builtin unset __workbench_status; }} 2>/dev/null\n"
)


class Status(NamedTuple):
    """How a cell ended."""

    number: int
    cut_short: bool
    """the shell has printed an end of line of its own then"""


class Shell:
    """Owns the process, a memory file with the code of the cell, and three pipes."""

    def __init__(self) -> None:
        self._number = 0
        self._code = memory_file("cell")
        self.out, out = os.pipe2(os.O_CLOEXEC)
        self.err, err = os.pipe2(os.O_CLOEXEC)
        self.status, status = os.pipe2(os.O_CLOEXEC)
        for reader in (self.out, self.err, self.status):
            os.set_blocking(reader, False)
        # Numbers that the shell finds them by; ours are closed once it has them.
        inherited = {self._code: _CODE, status: _STATUS, err: _STATUS + 1}
        for have, wanted in inherited.items():
            os.dup2(have, wanted, inheritable=True)
        os.close(self._code)
        self._code = _CODE
        # Only for what an interactive shell does to its terminal when something in it was killed; nobody reads it.
        self._terminal, terminal = os.openpty()
        self._process = subprocess.Popen(
            ("bash", "--norc", "--noprofile", "--noediting", "-i"),
            stdin=subprocess.PIPE,
            stdout=out,
            # What it says of not controlling a terminal; then what is printed gets its own way.
            stderr=terminal,
            env={**os.environ, "PS1": "", "PS2": ""},
            pass_fds=(_CODE, _STATUS, _STATUS + 1),
        )
        for descriptor in (out, err, status, terminal, _STATUS, _STATUS + 1):
            os.close(descriptor)
        self.ended = os.pidfd_open(self._process.pid)
        self._write(_BEGIN)

    def run(self, code: str) -> None:
        """Begin a cell."""
        self._number += 1
        data = code.encode("utf-8", "replace").replace(b"\0", b"")
        os.ftruncate(self._code, 0)
        written = 0
        while written < len(data):
            written += os.pwrite(self._code, data[written:], written)
        self._write(_RUN)
        self.ask()

    def ask(self) -> None:
        """Have it tell when the cell is over; again, if what was asked before may have gone with an interrupt."""
        self._write(_TELL.format(number=self._number))

    def status_of_cell(self) -> Status | None:
        """How the present cell ended, if it has."""
        with contextlib.suppress(BlockingIOError):
            for line in os.read(self.status, 65536).decode("ascii", "replace").splitlines():
                number, status, left = (*line.split(" "), "", "")[:3]
                if number == str(self._number) and status.isdigit():
                    return Status(int(status), cut_short=bool(left) or int(status) == _INTERRUPTED)
        return None

    @property
    def folder(self) -> str:
        """Where it stands."""
        try:
            return os.readlink(f"/proc/{self._process.pid}/cwd")
        except OSError:
            return ""

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        # One that has ended is noticed by its end.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()

    def wait(self) -> int:
        """Its end, as subprocess tells it."""
        return self._process.wait()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
