"""One cell from its arrival to its report: mended, its names bound, its error looked at, and what was done told."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import re
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from workbench_guest import helpers
from workbench_guest.corrections import data, hints, imports, loops, parsing, removed, rules
from workbench_guest.corrections.desk import REPEATED, UNDONE, desk
from workbench_guest.corrections.names import Bound, missing_names
from workbench_guest.corrections.returns import END_NAME, EndOfCell, WithoutReturns, outer_returns
from workbench_guest.corrections.source import mended

_AS_IS = re.compile(r"\s*#\s*sandbox\s*:\s*as-is\s*", re.IGNORECASE)


class Cells:
    """Those of one memory."""

    def __init__(self) -> None:
        self._bound = Bound()
        self._before: set[tuple[str, str]] = set()
        """what the last cell was corrected for"""
        self._lasting: dict[str, Any] = {}
        """names that were bound for the last cell"""
        self._returns = False
        self._last_return = 0
        """the line of one that shows its value, until the cell has come there"""
        self._shell: Any = None
        self._before_us: list[tuple[Any, str, Any]] = []
        self._finder: Any = None
        self._transformer: Any = None

    def prepare(self, shell: Any) -> None:
        """Before the fork, once: what is changed of a library in a fork would cost each of them the pages of its types.

        Each change looks at the switches when it is met, and is as if it were not there where they are off.
        """
        self._shell = shell
        desk.namespace, desk.on = shell.user_ns, rules.DEFAULT
        patches: dict[str, imports.Patch] = {
            "yaml": data.yaml_representers,
            "orjson": data.orjson_pairs,
            "pandas": removed.patch_pandas,
        }
        patches |= {"requests.models": parsing.patch_response, "httpx._models": parsing.patch_response}
        patches |= dict.fromkeys(removed.TABLES, removed.patch_module)
        loop: Any = asyncio.BaseEventLoop
        places = (
            (json, "loads"),
            (json, "load"),
            (asyncio, "run"),
            (asyncio.runners, "run"),
            (loop, "run_until_complete"),
        )
        self._before_us = [(place, name, getattr(place, name)) for place, name in places]
        parsing.patch_json()
        loops.patch()
        self._finder = imports.AfterImport(patches)
        self._finder.install()
        self._transformer = _Returns(self)
        shell.ast_transformers.append(self._transformer)
        self._dress(rules.DEFAULT)

    def _take_back(self) -> None:
        """For who wants plain Python: what others could find of us. The rest looks at the switches."""
        for place, name, value in self._before_us:
            setattr(place, name, value)
        sys.meta_path.remove(self._finder)
        self._shell.ast_transformers.remove(self._transformer)

    def _dress(self, on: frozenset[str]) -> None:
        dresser = data.Dresser(on)
        desk.dress = dresser.data
        helpers.dress_with(dresser.pair)

    def install(self, shell: Any, environment: Mapping[str, str]) -> None:
        """Once the environment of this memory is known."""
        if self._shell is not shell:
            self.prepare(shell)
        on = rules.switches_of(environment.get(rules.VARIABLE))
        desk.namespace, desk.on, desk.active = shell.user_ns, on, False
        if on != rules.DEFAULT:
            self._dress(on)
        if not on:
            self._take_back()

    def begin(self, code: str, *, served: bool) -> str:
        """What is to be run; `served` is False for cells that have no report."""
        desk.active = self._returns = False
        self._last_return = 0
        self._bound = Bound()
        if not served or not desk.on:
            return code
        desk.begin()
        if _AS_IS.fullmatch(code.lstrip().split("\n", 1)[0]):
            for rule, _ in self._before:
                desk.report.count(rule, UNDONE)
            desk.active = False
            return code
        try:
            return self._prepared(code)
        except Exception:  # noqa: BLE001  a fault of ours may not keep a cell from running
            return code

    def _prepared(self, code: str) -> str:
        text, tree = self._parsed(code)
        if tree is None and "source" in desk.on:
            better = mended(code, lambda one: self._parsed(one)[1] is not None, desk.declined)
            if better is not None:
                code = better.text
                text, tree = self._parsed(code)
                for rule, note in better.notes:
                    desk.acted(rule, note.written, note.used, note.line)
        desk.cell_file = self._shell.compile.get_code_name(code, code, 0)
        desk.first_line = 1 + _leading(code)
        if tree is not None and tree.body:
            self._look_at_returns(tree, text)
            self._bind(text, tree)
        return code

    def _parsed(self, code: str) -> tuple[str, ast.Module | None]:
        """As Python, or as IPython makes Python of it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return code, ast.parse(code)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                pass
            try:
                text = self._shell.transform_cell(code)
                return text, ast.parse(text)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return code, None

    def _look_at_returns(self, tree: ast.Module, text: str) -> None:
        if "return" not in text or "source" not in desk.on:
            return
        found = outer_returns(tree)
        if not found.lines:
            return
        if found.declined or not _compiles(WithoutReturns().visit(ast.parse(text))):
            desk.declined("return-outside-function")
            return
        self._returns = True
        self._shell.user_ns[END_NAME] = self._shell.user_ns_hidden[END_NAME] = EndOfCell
        self._last_return = next((line for line, shows in found.lines if shows), 0)

    def _bind(self, text: str, tree: ast.Module) -> None:
        if not desk.on & {"names", "source"}:
            return
        self._bound = missing_names(text, tree, self._shell.user_ns, desk.on, desk.declined)
        self._shell.user_ns.update(self._bound.passing)
        self._shell.user_ns.update(self._bound.lasting)
        for rule, line, written, used in self._bound.notes:
            desk.acted(rule, written, used, line)

    def returns(self, tree: ast.Module) -> ast.Module:
        """The tree without its returns, if it is that of the cell that has them; asked once."""
        if not self._returns:
            return tree
        self._returns = False
        return WithoutReturns().visit(tree)  # type: ignore[no-any-return]

    def needs_loop(self, code: str) -> bool | None:
        """Whether a cell with returns awaits something; None if it is no such cell."""
        if not self._returns:
            return None
        _, tree = self._parsed(code)
        made = _compiled(WithoutReturns().visit(tree)) if tree is not None else None
        return made is not None and bool(made.co_flags & inspect.CO_COROUTINE)

    def ended_early(self, problem: BaseException) -> None:
        """The cell came to a `return`."""
        desk.acted("return-outside-function", "return at top level", "the end of the cell", _line_of(problem))
        self._last_return = 0

    def left(self, problem: BaseException | None) -> bool:
        """exit() or sys.exit() ended the cell; whether that is told in its report."""
        if not desk.active or "runtime" not in desk.on:
            return False
        said = "exit() ended this cell; the session and its variables live on"
        desk.acted("exit-call", said, "", _line_of(problem))
        return True

    def end(self, problem: BaseException | None, names: dict[str, Any]) -> dict[str, Any]:
        """What is told of it."""
        if not desk.on:
            return {}
        if desk.active and problem is not None and "hints" in desk.on:
            try:
                hints.hint(problem, {name: one for name, one in names.items() if name not in self._bound.passing})
            except Exception:  # noqa: BLE001  the agent's objects may raise at anything
                desk.declined("close-name")
        if desk.active and self._last_return and problem is None:
            desk.acted("return-outside-function", "return at top level", "its value, shown", self._last_return)
        self._unbind()
        was_active, desk.active = desk.active, False
        report = desk.report
        if was_active:
            for rule, written in report.fired & self._before:
                del written
                report.count(rule, REPEATED)
        for name, value in self._lasting.items():
            if self._shell.user_ns.get(name, self) is not value:
                report.count("missing-name", UNDONE)
        self._before = report.fired
        self._lasting = self._bound.lasting
        return report.told()

    def _unbind(self) -> None:
        space = self._shell.user_ns
        for name, value in self._bound.passing.items():
            if space.get(name, self) is value:
                del space[name]
        if END_NAME in space:
            del space[END_NAME], self._shell.user_ns_hidden[END_NAME]


class _Returns:
    """IPython asks it for each tree that it runs."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    def visit(self, tree: ast.Module) -> ast.Module:
        """As ast's transformers are asked."""
        return self._cells.returns(tree)


def _leading(code: str) -> int:
    """Empty lines at the top, which IPython drops before it counts."""
    lines = code.split("\n")
    return next((number for number, line in enumerate(lines) if line.strip()), 0)


def _compiled(tree: ast.AST) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compile(tree, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)  # type: ignore[call-overload]
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError):
        return None


def _compiles(tree: ast.AST) -> bool:
    return _compiled(tree) is not None


cells = Cells()


def _line_of(problem: BaseException | None) -> int:
    """Where the cell was when this was raised, perhaps further down; 0 if nobody can tell."""
    line, step = 0, problem.__traceback__ if problem is not None else None
    while step is not None:
        line = desk.line_of(step.tb_frame.f_code.co_filename, step.tb_lineno) or line
        step = step.tb_next
    return line
