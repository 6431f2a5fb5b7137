"""A process in a sandbox: what is asked for, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from workbench.errors import InvalidRequest
from workbench.model.ids import ProcessId

# Together they must fit one control message.
MAX_ARGUMENT_BYTES = 96 * 1024
# A forked entry takes its payload through memory, not through a message.
MAX_PAYLOAD_BYTES = 16 * 1024 * 1024


class Stream(StrEnum):
    """Where output came from."""

    STDOUT = "stdout"
    STDERR = "stderr"


class Limit(StrEnum):
    """A cap of the tier that was met, by the name an agent is told."""

    MEMORY = "out of memory"
    PROCESSES = "too many processes"
    DISK = "disk full"
    OPEN_FILES = "too many open files"


def check_words(env: Mapping[str, str], *words: str) -> None:
    """That a kernel would take these as variables and arguments.

    Raises:
        InvalidRequest: a NUL, text that no file system encoding has, a name with "=", or too much of it all.
    """
    every = [*words, *env, *env.values()]
    if any("\0" in word for word in every):
        raise InvalidRequest("arguments, variables and the working folder may not contain a NUL character")
    if any("=" in name or not name for name in env):
        raise InvalidRequest("a variable's name may not be empty or contain '='")
    try:
        size = sum(len(word.encode("utf-8", "surrogateescape")) for word in every)
    except UnicodeEncodeError:
        raise InvalidRequest("arguments, variables and the working folder must be text in UTF-8") from None
    if size > MAX_ARGUMENT_BYTES:
        raise InvalidRequest(
            f"arguments and variables are over {MAX_ARGUMENT_BYTES} bytes; put them into a file under /mnt/files"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """One process to start: either a program, or an entry of the guest run in a fork of the warm interpreter."""

    id: ProcessId
    argv: tuple[str, ...] = ()
    entry: str | None = None
    payload: bytes = b""
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = "/home/user"
    stdin: bool = False
    """keep standard input open for `write_stdin`; else it is empty"""
    may_snapshot: bool = False
    """an entry that may leave dormant copies of itself in the sandbox"""
    snapshot: str | None = None
    """go on as this dormant copy of an entry, with its memory, variables and folder, instead of starting a new one"""

    def checked(self) -> ProcessSpec:
        """Itself, if it can be started.

        Raises:
            InvalidRequest: it names neither or both, is too large, or holds what the kernel cannot take.
        """
        if bool(self.argv) == bool(self.entry):
            raise InvalidRequest("a process needs either argv or an entry, and not both")
        check_words(self.env, *self.argv, self.cwd)
        if len(self.payload) > MAX_PAYLOAD_BYTES:
            raise InvalidRequest(f"the code is over {MAX_PAYLOAD_BYTES} bytes; put it into a file under /mnt/files")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExit:
    """How a process that began came to its end. Always a result, never an error."""

    code: int | None
    """its exit code; None when a signal or the loss of the sandbox ended it"""
    signal: int | None = None
    lost: bool = False
    """the sandbox ended under it"""
    limits: tuple[Limit, ...] = ()
    """caps that were met while it ran"""
    cpu_s: float = 0.0
    peak_bytes: int = 0
    reason: str = ""
    """for a lost process: what ended the sandbox"""
