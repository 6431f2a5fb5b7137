"""The last finder on `sys.meta_path`: an import that failed everywhere else is asked for outside, and goes on.

It fires exactly where the import fails, so nothing is run twice. Only the agent's own imports are served: those of
libraries, probes, and those whose failure the code handles itself stay what they are.
"""

from __future__ import annotations

import os
import sys

from workbench_guest import packages
from workbench_guest.packages.frames import is_the_agents

# Every Python of a sandbox has this module, and starts no slower for it: what is used later is imported later.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import importlib.machinery
    import types
    from collections.abc import Iterator, Sequence

# How an answer that was given once is given again to a loop that asks.
_REMEMBERED_S = 60.0
_MACHINERY = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")
_IMPORTING = "_find_and_load"


class PackageFinder:
    """One per interpreter."""

    def __init__(self) -> None:
        self._refused: dict[str, tuple[float, str]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """As the import system has it; None if nobody has the module.

        Raises:
            ModuleNotFoundError: as without us, with a note that says why nothing was installed.
        """
        del target
        if (found := self._arrived(fullname, path)) is not None:
            return found
        if path is not None and not _is_shared(fullname.rpartition(".")[0]):
            # A part of a package that is there: another package does not have it.
            return None
        frame, wanted = _who_imports(fullname)
        if frame is None or not is_the_agents(frame):
            return None
        try:
            refused = self._asked(fullname, wanted, frame)
        except Exception:  # noqa: BLE001  whatever lies in the agent's folder under the name of a module of Python's own
            return None
        if refused is None:
            return None
        if refused:
            raise _not_found(fullname, refused)
        return self._looked_up_again(fullname, path)

    def _asked(self, fullname: str, wanted: str, frame: types.FrameType) -> str | None:
        """Empty if it is there now, or why it is not; None if the import is to fail as it would without us."""
        import time

        from workbench_guest.packages import asking, guarding

        known = self._refused.get(fullname)
        if known is not None and time.monotonic() - known[0] < _REMEMBERED_S:
            return known[1]
        guarded = guarding.is_guarded(frame)
        told = asking.install(
            {
                "language": "python",
                "modules": _names(fullname, wanted, frame),
                "guarded": guarded,
                "line": frame.f_lineno,
            },
            f"a package for `import {wanted}`",
        )
        if told.failed or (told.refused and guarded):
            # A failure of ours is no part of what the code raises.
            return None
        if told.refused:
            self._refused[fullname] = (time.monotonic(), told.refused)
        return told.refused

    def invalidate_caches(self) -> None:
        """What was refused may be allowed by now."""
        self._refused.clear()

    def _arrived(self, fullname: str, path: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
        """What others of the session had installed: a folder that was not there at first is not looked at again."""
        site = packages.site()
        if sys.path_importer_cache.get(site, sys) is not None or not os.path.isdir(site):
            return None
        return self._looked_up_again(fullname, path)

    def _looked_up_again(self, fullname: str, path: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
        """By all others: some of them do something to what they find."""
        import importlib

        importlib.invalidate_caches()
        for finder in sys.meta_path:
            # An agent's own may be of the old kind, which has no such method.
            look = getattr(finder, "find_spec", None)
            if finder is not self and look is not None and (found := look(fullname, path)) is not None:
                return found  # type: ignore[no-any-return]  # a finder's answer
        return None


def _not_found(fullname: str, reason: str) -> ModuleNotFoundError:
    problem = ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
    if reason:
        problem.add_note(f"[sandbox] {reason}")
    return problem


def _is_shared(parent: str) -> bool:
    """Whether it is a name that many distributions share, such as `google.cloud`."""
    module = sys.modules.get(parent)
    return module is not None and getattr(module, "__file__", None) is None


def _who_imports(fullname: str) -> tuple[types.FrameType | None, str]:
    """The frame whose import this is, and the whole name that it imports; no frame for who only asks."""
    frame: types.FrameType | None = sys._getframe(1)  # noqa: SLF001  there is no other way to know
    wanted = ""
    while frame is not None:
        code = frame.f_code
        if code.co_filename in _MACHINERY:
            if code.co_name == _IMPORTING:
                wanted = frame.f_locals.get("name", fullname)
        elif frame.f_globals.get("__name__") not in ("importlib", __name__):
            break
        frame = frame.f_back
    return (frame, wanted) if wanted else (None, "")


def _names(fullname: str, wanted: str, frame: types.FrameType) -> list[str]:
    """What may name a package, the longest first: `from google.cloud import storage` fails at `google`."""
    names = [f"{wanted}.{one}" for one in _imported_from(frame, wanted)][:10]
    parts = wanted.split(".")
    shorter = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    names += [one for one in shorter if len(one) >= len(fullname) or one == fullname]
    return list(dict.fromkeys(names))


def _imported_from(frame: types.FrameType, wanted: str) -> Iterator[str]:
    """The names behind `import` of `from wanted import …`, if that is what the frame is at."""
    import dis

    names: object = ()
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            if instruction.opname == "IMPORT_NAME" and instruction.argval == wanted and isinstance(names, tuple):
                yield from (name for name in names if isinstance(name, str) and name.isidentifier())
            return
        names = instruction.argval if instruction.opname == "LOAD_CONST" else names
