"""The process that reads, `python -m workbench_guest.extract.worker PATH FIRST SECONDS`: answers in lines of JSON."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Mapping

from workbench_guest.extract import limits
from workbench_guest.extract.dispatch import kind_of, read_as
from workbench_guest.extract.values import Source, Unreadable

_TOO_MUCH = "needs more memory than reading may take: split it, or read it in pieces by code"


class _Parent:
    """Who listens. Standard output becomes standard error, as libraries may print."""

    def __init__(self) -> None:
        self._descriptor = os.dup(1)
        os.dup2(2, 1)

    def tell(self, fields: Mapping[str, object]) -> None:
        line = json.dumps(fields).encode() + b"\n"
        view = memoryview(line)
        while view:
            view = view[os.write(self._descriptor, view) :]


def _confine() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = limits.WORKER_BYTES if hard == resource.RLIM_INFINITY else min(limits.WORKER_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    # As it is before anybody sets it: the end of the process, which also ends a library that hangs.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _read(parent: _Parent, path: str, first: int, page_s: int) -> None:
    with open(path, "rb") as file:
        source = Source(name=path, file=file, size=os.fstat(file.fileno()).st_size)
        kind = kind_of(source)
        parent.tell({"kind": kind})
        document = read_as(kind, source, first)
        parent.tell({"pages": document.pages, "resumable": document.resumable})
        found, warned, told = 0, False, first
        for piece in document.pieces:
            signal.alarm(page_s)
            room = limits.MAX_TEXT_CHARS - found
            parent.tell({"text": piece.text[:room], "after": piece.after, "warning": piece.warning})
            found += len(piece.text.strip())
            warned = warned or bool(piece.warning)
            told += 1
            if len(piece.text) > room:
                raise Unreadable(f"{path} has over {limits.MAX_TEXT_CHARS} characters: this is the beginning; "
                                 "read the rest by code")  # fmt: skip
            if document.resumable and told >= limits.MAX_PAGES:
                raise Unreadable(f"{path} has {document.pages} pages: these are the first {limits.MAX_PAGES}; split it")
        if not found and not warned and not first:
            raise Unreadable(
                f"no text was found in {path}: look at it as a picture, or check that it is the right file"
            )


def main(path: str, first: int, page_s: int) -> None:
    """Read it; what goes wrong is told, not raised."""
    parent = _Parent()
    _confine()
    signal.alarm(page_s)
    try:
        _read(parent, path, first, page_s)
    except Unreadable as problem:
        parent.tell({"warning": str(problem)})
    except MemoryError:
        parent.tell({"warning": f"{path} {_TOO_MUCH}"})
    except RecursionError:
        parent.tell({"warning": f"{path} is nested too deeply to be read: make it again without so many levels"})
    except ImportError as problem:
        parent.tell({"warning": f"{path} needs {problem.name}, which this image lacks: run `workbench image build`"})
    except BrokenPipeError:
        sys.exit(1)
    except Exception as problem:  # noqa: BLE001 - libraries raise whatever they like about a broken file
        parent.tell({"warning": f"{path} is broken or not what it seems ({_said(problem)}): make it again"})
    signal.alarm(0)
    parent.tell({"done": True})


def _said(problem: Exception) -> str:
    first = (str(problem).strip().splitlines() or [""])[0][:200]
    return f"{type(problem).__name__}: {first}" if first else type(problem).__name__


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    # Nothing that libraries do on the way out is of use to anybody, and some of them print.
    os._exit(0)
