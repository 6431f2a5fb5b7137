"""Names that a cell uses and nothing binds: well-known ones are bound before it runs. The source stays as it is."""

from __future__ import annotations
import __future__

import ast
import builtins
import importlib
import re
import symtable
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from workbench_guest.corrections import known_names, places
from workbench_guest.corrections.known_names import ANY, CALLED, CONSTANTS, LANGUAGE_WORDS, MEANINGS, MODULE, Meaning

_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
# By these a cell can bind, or ask for, names that nobody sees in its source.
_UNSEEN = frozenset({"exec", "eval", "globals", "locals", "vars", "dir", "get_ipython", "__import__", "setattr"})
# What IPython makes of `!ls` and of these magics binds none either.
_SHELL_CALLS = frozenset({"system", "getoutput"})
_MAGICS = frozenset({"cd", "config", "env", "ls", "matplotlib", "pip", "pwd"})
_CODE_WORD = "language-word"


@dataclass(slots=True)
class Bound:
    """What was bound for a cell."""

    lasting: dict[str, Any] = field(default_factory=dict)
    passing: dict[str, Any] = field(default_factory=dict)
    """for this cell only"""
    notes: list[tuple[str, int, str, str]] = field(default_factory=list)
    """rule, line, what was written, what was used"""


def missing_names(
    text: str, tree: ast.Module, namespace: dict[str, Any], on: frozenset[str], declined: Callable[[str], None]
) -> Bound:
    """What is to be bound before `text` runs, whose tree is given."""
    bound = Bound()
    # Nearly always all there is to do.
    wanted = {
        name
        for name in known_names.NAMES.intersection(_WORD.findall(text))
        if name not in namespace and not hasattr(builtins, name)
    }
    if not wanted:
        return bound
    uses = _Uses(tree, wanted, _leaves_annotations(tree, namespace))
    free = (_free_names(text) & wanted & uses.lines.keys()) - uses.bound
    if uses.unseen:
        for _ in free:
            declined("missing-name")
        return bound
    for name in sorted(free, key=lambda one: uses.lines[one]):
        if name in LANGUAGE_WORDS:
            if "source" in on and _is_language_word(tree, name, uses):
                bound.passing[name] = None
                bound.notes.append((_CODE_WORD, uses.lines[name], f"the word {name!r}", "nothing"))
        elif "names" in on:
            _bind(name, uses, bound, declined)
    return bound


def _bind(name: str, uses: _Uses, bound: Bound, declined: Callable[[str], None]) -> None:
    line = uses.lines[name]
    if name in uses.guarded or not uses.is_reached(name):
        declined("missing-name")
    elif name in CONSTANTS:
        bound.passing[name] = CONSTANTS[name]
        bound.notes.append(("missing-name", line, name, repr(CONSTANTS[name])))
    else:
        fitting = [(one, value) for one in MEANINGS[name] for value in _value(one, name, uses)]
        if len(fitting) != 1:
            declined("missing-name")
            return
        meaning, value = fitting[0]
        bound.lasting[name] = value
        what = meaning.code if meaning.attribute or meaning.module == name else f"{meaning.code} as {name}"
        bound.notes.append(("missing-name", line, f"{name} is not defined", what))


def _value(meaning: Meaning, name: str, uses: _Uses) -> list[Any]:
    """What it stands for, if it is used as that can be, and is there."""
    attributes, other = uses.attributes[name], uses.other[name]
    called = uses.called[name]
    if not meaning.attribute and (other or called):
        return []
    if (meaning.use == CALLED and other) or (meaning.use == MODULE and name in uses.types):
        return []
    try:
        value: Any = importlib.import_module(meaning.module)
        for part in known_names.parts_of(meaning.module):
            importlib.import_module(part)
        if meaning.attribute:
            value = getattr(value, meaning.attribute)
    except Exception:  # noqa: BLE001  whatever an import does: then there is nothing to bind
        return []
    if meaning.use != ANY and any(not hasattr(value, attribute) for attribute in attributes):
        return []
    if meaning.use == CALLED and name in uses.types and not isinstance(value, type):
        return []
    return [value]


def _leaves_annotations(tree: ast.Module, namespace: dict[str, Any]) -> bool:
    """Whether nobody works annotations out, here or since an earlier cell."""
    return namespace.get("annotations") is __future__.annotations or any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" and node.names[0].name == "annotations"
        for node in tree.body
    )


def _is_shell_call(node: ast.Call) -> bool:
    """What `!ls` and some magics are made of."""
    if not isinstance(node.func, ast.Attribute) or not isinstance(node.func.value, ast.Call):
        return False
    shell = node.func.value.func
    if not isinstance(shell, ast.Name) or shell.id != "get_ipython":
        return False
    if node.func.attr == "run_line_magic":
        return bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value in _MAGICS
    return node.func.attr in _SHELL_CALLS


def _is_language_word(tree: ast.Module, name: str, uses: _Uses) -> bool:
    first = tree.body[0]
    alone = isinstance(first, ast.Expr) and isinstance(first.value, ast.Name) and first.value.id == name
    return alone and len(tree.body) > 1 and uses.count[name] == 1 and tree.body[1].lineno > first.lineno


def _free_names(text: str) -> set[str]:
    """Names that are looked up among those of the session."""
    try:
        top = symtable.symtable(text, "<cell>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    free: set[str] = set()
    bound: set[str] = set()

    def walk(table: symtable.SymbolTable) -> None:
        for symbol in table.get_symbols():
            here = symbol.is_assigned() or symbol.is_imported()
            if table is top:
                (bound if here or symbol.is_namespace() else free).add(symbol.get_name())
            elif symbol.is_global():
                (bound if here else free).add(symbol.get_name())
        for child in table.get_children():
            walk(child)

    walk(top)
    return free - bound


class _Uses(ast.NodeVisitor):
    """How some names are used in a tree."""

    def __init__(self, tree: ast.Module, wanted: set[str], leaves_annotations: bool) -> None:
        self._wanted = wanted
        self._leaves_annotations = leaves_annotations
        self._guards: list[tuple[frozenset[str], bool]] = []
        self.lines: dict[str, int] = {}
        self.count: dict[str, int] = dict.fromkeys(wanted, 0)
        self.attributes: dict[str, set[str]] = {name: set() for name in wanted}
        self.called: dict[str, bool] = dict.fromkeys(wanted, False)
        self.other: dict[str, bool] = dict.fromkeys(wanted, False)
        self.types: set[str] = set()
        """those of annotations"""
        self.guarded: set[str] = set()
        self.bound: set[str] = set()
        """also where it is deleted"""
        self.unseen = False
        self._as: dict[int, str] = {}
        self._inside = ""
        """what has to be used for this to run: the outermost function, or the class of a method"""
        self._class = ""
        """the outermost class that is being looked at"""
        self._is_local = False
        """the scope is a function's"""
        self._is_annotation = False
        self._used_in: dict[str, set[str]] = {}
        self._used_by: dict[str, set[str]] = {"": set()}
        """names, by what they are inside of"""
        self._used_guarded: set[str] = set()
        self.visit(tree)
        # Who calls a function where NameErrors are caught counts on those of the function as well.
        guarded = self._with_theirs(self._used_guarded)
        self.guarded |= {name for name, within in self._used_in.items() if within & guarded}
        self._reached = {"", *self._with_theirs(self._used_by[""])}

    def is_reached(self, name: str) -> bool:
        """Whether the cell comes there: outside of functions, or in one that is used there, or by one that is.

        What is only defined may never run, or in a session that has the name by then.
        """
        return not self._used_in[name].isdisjoint(self._reached)

    def _with_theirs(self, names: set[str]) -> set[str]:
        """And what is used inside of these, and inside of that."""
        found, new = set(names), set(names)
        while new:
            new = {inner for name in new for inner in self._used_by.get(name, ())} - found
            found |= new
        return found

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name):
            self._as[id(node.value)] = node.attr
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if _is_shell_call(node):
            return
        self._as[id(node.func)] = "("
        if isinstance(node.func, ast.Name) and node.func.id in _UNSEEN:
            self.unseen = True
        self.generic_visit(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        # All but the body is worked out where it is defined.
        for one in node.decorator_list:
            self._as[id(one)] = "("
            self.visit(one)
        self.visit(node.args)
        self._annotation(node.returns)
        before = self._inside, self._is_local
        self._inside, self._is_local = self._inside or self._class or node.name, True
        for statement in node.body:
            self.visit(statement)
        self._inside, self._is_local = before

    visit_FunctionDef = visit_AsyncFunctionDef = _function  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for one in [*node.decorator_list, *node.bases]:
            self._as[id(one)] = "("
        before = self._class, self._is_local
        self._class, self._is_local = self._class or node.name, False
        self.generic_visit(node)
        self._class, self._is_local = before

    def visit_arg(self, node: ast.arg) -> None:
        self._annotation(node.annotation)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)
        # In a function nobody works it out.
        self._annotation(None if self._is_local else node.annotation)

    def _annotation(self, node: ast.expr | None) -> None:
        if node is not None and not self._leaves_annotations:
            self._is_annotation = True
            self.visit(node)
            self._is_annotation = False

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.unseen = self.unseen or any(one.name == "*" for one in node.names)

    def visit_Try(self, node: ast.Try) -> None:
        self._guarded(node)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.visit(item)
        # What `suppress` is given is not looked at: whoever suppresses anything counts on errors there.
        suppressed = {"NameError"} if any(places.suppresses(item) for item in node.items) else set()
        self._guards.append((frozenset(suppressed), False))
        for one in node.body:
            self.visit(one)
        self._guards.pop()

    visit_With = visit_AsyncWith = _with  # noqa: N815

    def _guarded(self, node: ast.Try | ast.TryStar) -> None:
        names = frozenset().union(*(places.caught_by(one.type) for one in node.handlers))
        probing = all(isinstance(one, ast.Expr) and isinstance(one.value, ast.Name) for one in node.body[:1])
        self._guards.append((names, probing))
        for one in node.body:
            self.visit(one)
        self._guards.pop()
        for other in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(other)

    def visit_TryStar(self, node: ast.TryStar) -> None:
        self._guarded(node)

    def visit_Name(self, node: ast.Name) -> None:
        self._used_by.setdefault(self._inside, set()).add(node.id)
        if any("NameError" in caught for caught, _ in self._guards):
            self._used_guarded.add(node.id)
        if node.id not in self._wanted:
            return
        if not isinstance(node.ctx, ast.Load):
            self.bound.add(node.id)
            return
        name = node.id
        self._used_in.setdefault(name, set()).add(self._inside)
        self.lines.setdefault(name, node.lineno)
        self.count[name] += 1
        use = self._as.get(id(node), "")
        if use == "(":
            self.called[name] = True
        elif use:
            self.attributes[name].add(use)
        elif self._is_annotation:
            self.types.add(name)
        else:
            self.other[name] = True
        for caught, probing in self._guards:
            if "NameError" in caught or (probing and caught & {"Exception", "BaseException", places.ANYTHING}):
                self.guarded.add(name)
