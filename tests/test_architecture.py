"""Imports point inwards; every folder of the source is in the table, and the inner ones know no world."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src"
WORKBENCH, GUEST = SOURCE / "workbench", SOURCE / "workbench_guest"
INNER = {"errors", "model", "contracts"}
MAY_IMPORT: dict[str, set[str]] = {
    "__init__": {"client", "errors"},
    "errors": set(),
    "model": {"errors"},
    "contracts": {"errors", "model"},
    "guest_trees": set(),
    "guest_files": set(),
    "descriptor_writer": set(),
    "threads": set(),
    "local_folders": set(),
    "local_sandbox": {"errors"},
    "packages": INNER,
    "engines": {*INNER, "guest_trees"},
    "images": {"errors", "model"},
    "runtimes": {"errors", "model"},
    "wire": {"errors", "model"},
    "egress": {"errors", "model"},
    "services": INNER,
    "toolkits": {*INNER, "egress"},
    "settings": {"errors", "model"},
    "data_folder": {"errors", "model"},
    "core": INNER,
    "kernels": {*INNER, "data_folder"},
    "storage": {*INNER, "data_folder", "guest_trees", "guest_files", "threads"},
    "host": {
        *INNER,
        "wire",
        "engines",
        "images",
        "kernels",
        "runtimes",
        "settings",
        "data_folder",
        "guest_trees",
        "guest_files",
    },
    "host_client": {*INNER, "wire", "settings", "data_folder"},
    "doctor": {*INNER, "engines", "images", "guest_trees"},
    "testing": INNER,
    "server": {*INNER, "core", "wire", "settings", "mcp", "threads", "local_sandbox"},
    "client": {"errors", "model", "wire", "threads", "local_folders"},
    "mcp": {*INNER, "core", "descriptor_writer", "__init__"},
}
# The only part that knows every adapter.
MAY_IMPORT["wiring"] = {
    *INNER, "core", "egress", "images", "packages", "runtimes", "services", "storage", "toolkits", "host_client",
    "data_folder", "settings",
}  # fmt: skip
# The command line puts everything together.
MAY_IMPORT["cli"] = set(MAY_IMPORT) - {"__init__"}
MAY_IMPORT["__main__"] = {"cli"}
# What both sides of a sandbox's wall read; the rest of the guest runs inside, and nowhere else.
MAY_SEE_GUEST = {
    "engines": {"messages", "channel", "confine.syscalls"},
    "kernels": {"kernel.flight_recorder"},
    "doctor": {"attacks"},
}
WORLD = {"asyncio", "socket", "subprocess", "time", "threading", "signal", "selectors", "select", "logging", "msgspec"}


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py"))


def _name(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def part_of(path: Path) -> str:
    """The folder or module right below the package that a file belongs to."""
    return path.relative_to(WORKBENCH).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    """Full names of what a file imports, at any depth of it; `from a import b` is a.b."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _below(package: str, path: Path) -> set[str]:
    return {name.removeprefix(f"{package}.") for name in imports(path) if name.startswith(f"{package}.")}


def test_every_part_is_in_the_table() -> None:
    unknown = {part_of(path) for path in _files(WORKBENCH)} - MAY_IMPORT.keys()
    assert not unknown, f"say in MAY_IMPORT what {sorted(unknown)} may see"


@pytest.mark.parametrize("path", _files(WORKBENCH), ids=_name)
def test_imports_point_inwards(path: Path) -> None:
    part = part_of(path)
    seen = {name.partition(".")[0] for name in _below("workbench", path)}
    outside = seen - MAY_IMPORT[part] - {part, "__version__"}
    assert not outside, f"{part} may not import {sorted(outside)}"


@pytest.mark.parametrize("path", _files(WORKBENCH), ids=_name)
def test_the_guest_is_seen_through_what_both_sides_read(path: Path) -> None:
    allowed = MAY_SEE_GUEST.get(part_of(path), set())
    for name in _below("workbench_guest", path):
        assert any(name == part or name.startswith(f"{part}.") for part in allowed), f"{part_of(path)} imports {name}"


@pytest.mark.parametrize("path", _files(GUEST), ids=_name)
def test_the_guest_sees_nothing_of_the_host(path: Path) -> None:
    assert not [name for name in imports(path) if name.split(".")[0] == "workbench"]


@pytest.mark.parametrize("path", [*_files(WORKBENCH / "model"), *_files(WORKBENCH / "contracts")], ids=_name)
def test_values_and_contracts_know_no_world(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & WORLD
    assert "environ" not in path.read_text(encoding="utf-8")


def test_the_inner_parts_need_nothing_that_is_installed() -> None:
    for path in (WORKBENCH / "errors.py", *_files(WORKBENCH / "model"), *_files(WORKBENCH / "contracts")):
        outside = {name.split(".")[0] for name in imports(path)} - {"workbench", "__future__"}
        assert outside <= sys.stdlib_module_names, path


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = {"utils", "util", "manager", "common", "base", "misc", "helper"}
    assert not [path for path in (*_files(WORKBENCH), *_files(GUEST)) if path.stem in empty]
