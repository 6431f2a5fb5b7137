"""The variables of one memory into another, one by one, through a file; what cannot be carried is told with its reason.

What holds afterwards: a name means an equal object. Two names of one object still are names of one object, and an
object that has a name is that object wherever another variable holds it. Functions see the names of their new memory,
instances are instances of the classes that came along. Modules are imported anew. What is lost: an object without a
name that two variables hold becomes two; what runs or is open (generators, sockets, files) stays.

`pack` runs in a fork of the kernel that is thrown away, `unpack` in a fresh kernel. Nothing else reads the file.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from workbench_guest.kernel import taken_apart
from workbench_guest.kernel.carry_file import Frame, Sink, frames

MOST_NAMES = 10_000
MOST_NAME = 200
MOST_REASON = 200
# Where nobody can tell one object from an equal one, and all of them are small.
_ATOMS = frozenset((int, float, complex, bool, type(None), type(Ellipsis), type(NotImplemented), range, slice))
_SMALL = 4096
# Asked past the class's own metaclass, which may have another answer.
_MRO, _DICT = type.__dict__["__mro__"], type.__dict__["__dict__"]
# What a pickle says instead of the names of the cells.
_MEMORY = ""


def pack(names: dict[str, Any], path: str) -> dict[str, Any]:
    """Write the variables; `{"carried": [name], "not_carried": {name: reason}, "more": names beyond the most}`.

    A variable may be written and still not arrive: only `unpack` tells. Where both name one, this reason is the better.

    Raises:
        OSError: there is such a file already, or it cannot be made.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    report = _Report()
    try:
        chosen = {name: names[name] for name in list(names)[:MOST_NAMES]}
        report.more = len(names) - len(chosen)
        for name in [name for name in chosen if not name.isidentifier() or len(name) > MOST_NAME]:
            report.lost(name, "this is not a name of Python's, or a very long one")
            del chosen[name]
        _Packing(chosen, Sink(descriptor), report).run()
    finally:
        os.close(descriptor)
    return report.told()


def unpack(path: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """Bind what arrives in `namespace`, and remove the file; a report like that of `pack`.

    Raises:
        OSError: the file cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # Gone before anything in it runs, so that nothing that happens there can leave it behind.
        os.unlink(path)
        return _Unpacking(descriptor, namespace).run()
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class _Report:
    carried: list[str] = field(default_factory=list)
    not_carried: dict[str, str] = field(default_factory=dict)
    more: int = 0

    def lost(self, name: str, problem: BaseException | str) -> None:
        if len(self.not_carried) < MOST_NAMES:
            self.not_carried[_printable(name, MOST_NAME)] = _reason(problem)

    def told(self) -> dict[str, Any]:
        return {"carried": self.carried, "not_carried": self.not_carried, "more": self.more}


def _reason(problem: BaseException | str) -> str:
    if isinstance(problem, str):
        return _printable(problem, MOST_REASON)
    try:
        text = f"{type(problem).__name__}: {problem}" if not isinstance(problem, _Missing) else str(problem)
    except BaseException:  # noqa: BLE001  the agent's own exception, which may raise another
        text = type(problem).__name__
    return _printable(text, MOST_REASON)


def _holds(label: str, why: str) -> str:
    # The innermost reason, however many hold each other.
    return _printable(f"it holds {label}, which cannot be carried: {why.rpartition('be carried: ')[2]}", MOST_REASON)


def _printable(text: str, most: int) -> str:
    line = " ".join(text[: 4 * most].split()).encode("utf-8", "backslashreplace").decode()
    return line if len(line) <= most else line[: most - 1] + "…"


class _Packing:
    """Every frame is one variable, or several that hold each other. Those outside of it are referred to by label."""

    def __init__(self, names: dict[str, Any], sink: Sink, report: _Report) -> None:
        self._sink = sink
        self._report = report
        module = sys.modules["__main__"]
        self._main, self._memory = module.__name__, module.__dict__
        self._values = {name: names[name] for name in _in_order(names, self._main)}
        self._labels: dict[int, str] = {}
        self._met: dict[str, set[str]] = {}
        self._failed: dict[str, str] = {}
        self._inside: frozenset[str] = frozenset()
        self._current: set[str] = set()
        self._unnamed: list[str] = []
        for name, value in self._values.items():
            if self._is_referred_to(value):
                self._labels.setdefault(id(value), name)

    def run(self) -> None:
        for name in list(self._values):
            self._write((name,))
        while self._unnamed:
            self._write((self._unnamed.pop(),))
        for ring in _rings(self._met):
            self._write(ring)
        self._report_who_holds_what_failed()

    def _report_who_holds_what_failed(self) -> None:
        """They were written, and would not arrive: the first reason is worth more than the last."""
        holders: dict[str, list[str]] = {}
        for label, held in self._met.items():
            for other in held:
                holders.setdefault(other, []).append(label)
        failed = list(self._failed)
        for label in failed:
            for holder in holders.get(label, ()):
                if holder not in self._failed:
                    self._failed[holder] = _holds(label, self._failed[label])
                    failed.append(holder)
        for name in self._values:
            if name.isidentifier() and name not in self._failed:
                self._report.carried.append(name)
            elif name.isidentifier():
                self._report.lost(name, self._failed[name])

    def _is_referred_to(self, value: Any) -> bool:
        kind = type(value)
        if kind in _ATOMS or value is self._memory or _is_a(value, types.ModuleType, types.BuiltinFunctionType):
            return False
        if kind is str or kind is bytes:
            return len(value) > _SMALL
        if _is_a(value, type):
            return _is_of(value, self._main)
        return kind is not types.FunctionType or value.__globals__ is self._memory

    def label_of(self, value: Any) -> str | None:
        """For a pickler: what to say instead of `value`; None to take it apart."""
        kind = type(value)
        if kind in _ATOMS:
            return None
        label = self._labels.get(id(value))
        if label is None:
            if value is self._memory:
                return _MEMORY
            if not _is_a(value, type) or not _is_of(value, self._main):
                return None
            if len(self._values) >= 2 * MOST_NAMES:
                raise pickle.PicklingError("there are too many classes without a name")
            # A class of the cells without a name here: one frame for it, so that all its instances stay alike.
            label = self._labels[id(value)] = f"<{len(self._labels)} {value.__name__}>"
            self._values[label] = value
            self._unnamed.append(label)
        if label in self._inside:
            return None
        self._current.add(label)
        return label

    def _write(self, labels: tuple[str, ...]) -> None:
        self._inside, self._current = frozenset(labels), set()
        try:
            with self._sink.frame(labels):
                self._dump([self._values[label] for label in labels])
        except BaseException as problem:  # noqa: BLE001  objects of the agent's may raise anything
            self._failed.update(dict.fromkeys(labels, _reason(problem)))
            return
        if len(labels) == 1:
            self._met[labels[0]] = self._current

    def _dump(self, values: list[Any]) -> None:
        start = self._sink.size
        if not any(_is_a(value, type, types.FunctionType, types.ModuleType) for value in values):
            try:
                # In C, many times faster; it refuses what only dill can do.
                _PlainPickler(self._sink, self).dump(values)
                return
            except (OSError, MemoryError, RecursionError):
                raise
            except Exception:  # noqa: BLE001  pickle and what it calls have no common word for a refusal
                self._sink.back_to(start)
        self._dump_with_dill(values)

    def _dump_with_dill(self, values: list[Any]) -> None:
        import dill  # here, as it costs every session memory that never copies anything

        pickler: Any = dill.Pickler(self._sink, pickle.HIGHEST_PROTOCOL, byref=False, recurse=False)
        # Not a class of ours: dill looks at where its pickler was defined.
        pickler._main = sys.modules["__main__"]  # noqa: SLF001
        pickler.persistent_id = self.label_of
        pickler.reducer_override = self.reduction
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pickler.dump(values)

    def reduction(self, value: Any) -> Any:
        """For a pickler."""
        return taken_apart.reduction(value, self._main, self._memory)

    def is_known_by_name(self, value: Any) -> bool:
        """Whether pickle would trust that the other memory has it under the same name."""
        return getattr(value, "__module__", None) == self._main and hasattr(value, "__name__")


class _PlainPickler(pickle.Pickler):
    def __init__(self, sink: Sink, packing: _Packing) -> None:
        super().__init__(sink, pickle.HIGHEST_PROTOCOL)
        self._packing = packing

    def persistent_id(self, obj: Any) -> str | None:
        return self._packing.label_of(obj)

    def reducer_override(self, obj: Any) -> Any:
        if self._packing.is_known_by_name(obj):
            raise pickle.PicklingError("only dill can")
        return NotImplemented


def _in_order(names: dict[str, Any], main: str) -> list[str]:
    """Modules, classes with their bases first, functions, the rest: what is needed by others is read first."""

    def rank(name: str) -> tuple[int, int]:
        value = names[name]
        if _is_a(value, types.ModuleType):
            return 0, 0
        if _is_a(value, type):
            return 1, len(_MRO.__get__(value)) if _is_of(value, main) else 0
        return (2 if _is_a(value, types.FunctionType) else 3), 0

    return sorted(names, key=rank)


def _is_a(value: Any, *kinds: type) -> bool:
    """As isinstance, without a question to the object itself, which may raise or pretend."""
    return issubclass(type(value), kinds)


def _is_of(made: type, module: str) -> bool:
    return bool(_DICT.__get__(made).get("__module__") == module)


def _rings(met: dict[str, set[str]]) -> Iterator[tuple[str, ...]]:
    """Labels that reach each other; Tarjan's way, without recursion."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    held: set[str] = set()
    for root in met:
        path: list[tuple[str, Iterator[str]]] = [] if root in number else [(root, iter(sorted(met[root])))]
        while path:
            label, others = path[-1]
            if label not in number:
                number[label] = lowest[label] = len(number)
                stack.append(label)
                held.add(label)
            for other in others:
                if other not in met:
                    continue
                if other not in number:
                    path.append((other, iter(sorted(met[other]))))
                    break
                if other in held:
                    lowest[label] = min(lowest[label], number[other])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[label])
                if lowest[label] == number[label]:
                    ring = stack[stack.index(label) :]
                    del stack[-len(ring) :]
                    held.difference_update(ring)
                    if len(ring) > 1:
                        yield tuple(ring)


class _Missing(Exception):
    """Something that a variable holds has not arrived."""


class _Unpacking:
    """Loads a frame when it is its turn, or when another one needs it."""

    def __init__(self, descriptor: int, namespace: dict[str, Any]) -> None:
        self._descriptor = descriptor
        self._namespace = namespace
        self._frames: dict[str, Frame] = {}
        self._loaded: dict[str, Any] = {}
        self._failed: dict[str, str] = {}
        self._loading: set[str] = set()

    def run(self) -> dict[str, Any]:
        # Of two frames with one label the later one counts: it has a whole ring.
        for frame in frames(self._descriptor):
            self._frames.update(dict.fromkeys(frame.labels, frame))
        report = _Report()
        for label in self._frames:
            with contextlib.suppress(_Missing):
                self.value_of(label)
            if label.isidentifier():
                if label in self._loaded:
                    report.carried.append(label)
                else:
                    report.lost(label, self._failed.get(label, "it was not read"))
        return report.told()

    def value_of(self, label: str) -> Any:
        """For an unpickler: what a label means."""
        if label == _MEMORY:
            return self._namespace
        if label in self._loaded:
            return self._loaded[label]
        if label in self._failed or label not in self._frames:
            raise _Missing(_holds(label, self._failed.get(label, "it was not carried")))
        frame = self._frames[label]
        labels = frame.labels
        if not self._loading.isdisjoint(labels):
            raise _Missing(_holds(label, "it holds this in turn"))
        self._loading.update(labels)
        try:
            with frame.open(self._descriptor) as file:
                values = dict(zip(labels, _Unpickler(file, self, self._namespace).load(), strict=True))
        except BaseException as problem:
            # The agent's own code runs in there, and may raise anything.
            reason = _reason(problem)
            self._failed.update(dict.fromkeys(labels, reason))
            raise _Missing(_holds(label, reason)) from problem
        finally:
            self._loading.difference_update(labels)
        self._loaded.update(values)
        self._namespace.update({name: value for name, value in values.items() if name.isidentifier()})
        return values[label]


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, unpacking: _Unpacking, namespace: dict[str, Any]) -> None:
        super().__init__(file)
        self._unpacking = unpacking
        self._namespace = namespace

    def persistent_load(self, pid: Any) -> Any:
        return self._unpacking.value_of(pid)

    def find_class(self, module: str, name: str) -> Any:
        # dill's own words for two things that have no name.
        if module == "__builtin__" and name in ("NoneType", "__main__"):
            return type(None) if name == "NoneType" else self._namespace
        return super().find_class(module, name)
