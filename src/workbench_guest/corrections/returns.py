"""`return` at top level: the last statement shows its value, an earlier one ends the cell."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

# A name that is there while such a cell runs.
END_NAME = "__workbench_end_of_cell__"


class EndOfCell(BaseException):
    """Raised where the agent wrote `return`; ends the cell, and is no error."""


@dataclass(slots=True)
class Returns:
    """What becomes of a cell's."""

    lines: list[tuple[int, bool]] = field(default_factory=list)
    """of each, and whether it shows its value"""
    declined: bool = False


def outer_returns(tree: ast.Module) -> Returns:
    """Those that stand in no function. Declined: one of them could not end the cell as a return ends a function."""
    found = Returns()

    def walk(node: ast.AST, safe: bool) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return
        if isinstance(node, ast.Return):
            found.lines.append((node.lineno, node is tree.body[-1]))
            found.declined = found.declined or not safe
            return
        # What is left by an error may do otherwise than what is left by a return: a context manager, a handler.
        safe = safe and not isinstance(node, (ast.ClassDef, ast.With, ast.AsyncWith))
        if isinstance(node, (ast.Try, ast.TryStar)):
            caught = [one.type for one in node.handlers]
            safe = safe and not any(
                one is None
                or (isinstance(one, ast.Name) and one.id == "BaseException")
                or not isinstance(one, ast.Name)
                for one in caught
            )
        for child in ast.iter_child_nodes(node):
            walk(child, safe)

    walk(tree, True)
    return found


class WithoutReturns(ast.NodeTransformer):
    """Puts the tree of such a cell right."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        """The last one shows its value."""
        last = node.body[-1]
        if isinstance(last, ast.Return):
            node.body[-1] = ast.copy_location(ast.Expr(last.value or ast.Constant(None)), last)
            ast.fix_missing_locations(node)
        self.generic_visit(node)
        return node

    def _as_is(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = _as_is  # noqa: N815

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        """Its value is still worked out."""
        raising: ast.stmt = ast.copy_location(ast.Raise(exc=ast.Name(END_NAME, ast.Load())), node)
        before: list[ast.stmt] = [ast.copy_location(ast.Expr(node.value), node)] if node.value is not None else []
        return [ast.fix_missing_locations(one) for one in (*before, raising)]
