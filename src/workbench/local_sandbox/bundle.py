"""The helpers as one Python file, out of the modules that sandboxes have: no function is written twice.

The modules are put one after the other as they stand, without their imports. That needs names that no two of them
share, and is refused otherwise. The same modules always make the same text.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Iterator
from pathlib import Path

HELPER_FILE = "composio_helper.py"
_GUEST = "workbench_guest"
# In the order of the file. What `helpers.calling` is for a sandbox, `local.calling` is for a box of the user's own.
_MODULES = (
    "helpers.shapes",
    "helpers.dressing",
    "helpers.arguments",
    "helpers.paths",
    "helpers.archive",
    "helpers.retrying",
    "local.asking",
    "local.calling",
    "helpers.services",
    "helpers.tools",
    "helpers.uploadable",
    "local.files",
    "local.extraction",
)
_OFFERED = (
    "get_mount_file_s3_key",
    "get_mount_file_url",
    "invoke_llm",
    "print_json_structure",
    "proxy_execute",
    "run_composio_tool",
    "smart_file_extract",
    "upload_local_file",
    "web_search",
)
_HEAD = '''\
"""Helpers for code in a box of your own: tools, a model, a web search and files of one Open Workbench session.

    from composio_helper import run_composio_tool, invoke_llm, web_search

Each gives `(result, error)`, with an empty error on success. Needs Python 3.9 or newer and nothing else, and the
variables that came with it: BACKEND_URL, COMPOSIO_TOOLROUTER_SESSION_ID, COMPOSIO_API_KEY. No credential is in here.
"""

from __future__ import annotations

'''


class BundleError(Exception):
    """The modules do not fit into one file. A defect of ours."""


class _Part:
    """One module: its text without imports, what it defines, and what it takes from elsewhere."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.imports: set[tuple[str, str]] = set()
        """modules of Python's own library, and what of them; empty for the module itself"""
        self.taken: set[str] = set()
        """names of the guest's other modules"""
        tree = ast.parse(text)
        self._title = ast.get_docstring(tree) or ""
        dropped = {number for node in self._heads(tree) for number in range(node.lineno, (node.end_lineno or 0) + 1)}
        lines = [line for number, line in enumerate(text.splitlines(), 1) if number not in dropped]
        self._body = "\n".join(lines).strip("\n")
        self.names = set(_defined(tree))
        self._check_no_late_imports(tree)

    def _heads(self, tree: ast.Module) -> Iterator[ast.stmt]:
        """What is not copied: the docstring and the imports."""
        for number, node in enumerate(tree.body):
            if number == 0 and isinstance(node, ast.Expr):
                yield node
            elif isinstance(node, ast.Import):
                self.imports.update((alias.name, "") for alias in node.names)
                yield node
            elif isinstance(node, ast.ImportFrom):
                self._note(node)
                yield node

    def _note(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if module.startswith(f"{_GUEST}."):
            if renamed := [alias.name for alias in node.names if alias.asname]:
                raise BundleError(f"{self.name} renames what it imports: {renamed}")
            self.taken.update(alias.name for alias in node.names)
        elif module != "__future__":
            self.imports.update((module, alias.name) for alias in node.names)

    def _check_no_late_imports(self, tree: ast.Module) -> None:
        late = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node not in tree.body]
        if any((node.module or "").startswith(_GUEST) for node in late):
            raise BundleError(f"{self.name} imports a module of the guest's inside of a function")

    def text(self) -> str:
        """As it stands in the file, with what it is about above it."""
        about = "\n".join(f"# {line}".rstrip() for line in self._title.splitlines())
        return f"# {'-' * 118}\n{about}\n\n{self._body}\n"


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))


@functools.cache
def helper_source() -> str:
    """The file. It is the same for everybody: what it reaches is said by variables."""
    return bundled([_Part(name, _source(name)) for name in _MODULES])


def bundled(parts: list[_Part]) -> str:
    """One text of them.

    Raises:
        BundleError: a name is defined twice, or missing.
    """
    home: dict[str, str] = {}
    for part in parts:
        for name in part.names:
            if name in home:
                raise BundleError(f"{part.name} and {home[name]} both define {name}")
            home[name] = part.name
    if missing := {name for part in parts for name in part.taken} - home.keys():
        raise BundleError(f"nobody defines {sorted(missing)}")
    offered = "".join(f'    "{name}",\n' for name in _OFFERED)
    head = _HEAD + _imports(parts) + f"\n\n__all__ = [\n{offered}]\n"
    return "\n\n".join([head, *(part.text() for part in parts)])


def _imports(parts: list[_Part]) -> str:
    wanted = sorted({one for part in parts for one in part.imports})
    whole = [f"import {module}" for module, name in wanted if not name]
    partly: dict[str, list[str]] = {}
    for module, name in wanted:
        if name:
            partly.setdefault(module, []).append(name)
    return "\n".join([*whole, *(f"from {module} import {', '.join(names)}" for module, names in partly.items())])


def _source(name: str) -> str:
    found = importlib.util.find_spec(_GUEST)
    assert found is not None
    assert found.submodule_search_locations is not None
    root = Path(next(iter(found.submodule_search_locations)))
    return (root / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8")
