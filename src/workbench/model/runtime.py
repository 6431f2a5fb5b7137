"""A runtime: a language that sessions can run, as a description. Adding one is a file and a Jupyter kernel."""

from __future__ import annotations

from dataclasses import dataclass

PYTHON = "python"
CONNECTION_FILE, GUEST, IMAGE_PYTHON = "{connection_file}", "{guest}", "{python}"
"""in the command of a kernel: its connection file, the folder of the guest's packages, the image's interpreter"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A file of the machine that a runtime cannot do without."""

    any_of: tuple[str, ...]
    """one of these is enough; a name without a slash is looked for on the path of sandboxes"""
    install: str
    """what to do if there is none, as a command"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What is known of one language before any kernel of it runs."""

    name: str
    title: str
    """as people write it"""
    language: str
    """as Jupyter's notebooks call it"""
    kernelspec: str
    """the name under which notebooks know its kernel"""
    file_extension: str
    aliases: tuple[str, ...] = ()
    """other names that callers may use"""
    argv: tuple[str, ...] = ()
    """the command of its kernel; empty for the image's own interpreter, which is forked: `python`, and no other"""
    env: tuple[tuple[str, str], ...] = ()
    """variables that its kernel needs"""
    needs: tuple[Need, ...] = ()
    no_memory: str = ""
    """why its memory cannot be kept beside it: no undo, no branch, no restoring; empty if it can"""
    interrupt_by_message: bool = False
    """whether its kernel needs `interrupt_request` on control besides the signal, which reaches what it has started"""
    tells_variables: bool = False
    """whether its kernel answers `workbench_variables_request`; the image's own interpreter does anyway"""
    processes: int = 1
    """how many its kernel is, each started by the one before; what the last one starts is the code's"""
    pooled: bool = False
    """whether its kernel can be started before its session is known, and is told it in a file (WORKBENCH_BEGIN)"""
    read_at_start: tuple[str, ...] = ()
    """beginnings of names of variables that it reads as it starts, beside those that any program may: who has others of
    these gets no kernel that waited
    """

    @property
    def forked(self) -> bool:
        """Whether it is the image's own interpreter."""
        return not self.argv

    @property
    def why_no_memory(self) -> str:
        """In a clause with the language's name; empty if its memory can be kept."""
        return "" if self.forked else f"{self.title}: {self.no_memory or 'its memory is not kept beside it'}"

    @property
    def names(self) -> tuple[str, ...]:
        """All that it is called by callers."""
        return (self.name, *self.aliases)


FORKED = Runtime(
    name=PYTHON,
    title="Python",
    language="python",
    kernelspec="python3",
    file_extension=".py",
    aliases=("python3", "py", "ipython"),
)
"""The image's own interpreter; `runtimes/python.json` says the same, and tests/unit/runtimes holds the two together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtimes:
    """Those of one server."""

    known: tuple[Runtime, ...] = (FORKED,)

    def find(self, name: str) -> Runtime | None:
        """By its name or another that it has, in whatever letters."""
        wanted = name.strip().lower()
        return next((one for one in self.known if wanted in one.names), None)
