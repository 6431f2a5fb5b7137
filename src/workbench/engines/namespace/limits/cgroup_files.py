"""Reading and writing the small files of a control group, and removing its folder; the same for both versions."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, value: int | str) -> None:
    """One value, in one write, as the kernel wants it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, str(value).encode())
    finally:
        os.close(descriptor)


def read_int(path: Path) -> int:
    """A number; "max" and a missing file are 0."""
    try:
        text = path.read_text().strip()
    except FileNotFoundError:
        return 0
    return int(text) if text.lstrip("-").isdigit() else 0


def read_table(path: Path) -> dict[str, int]:
    """Lines of a name and a number."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return {}
    pairs = (line.split() for line in lines)
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def remove(folder: Path) -> bool:
    """rmdir; True when it is gone."""
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def remove_tree(folder: Path) -> bool:
    """A group and its children, all of them empty of processes."""
    if not folder.is_dir():
        return True
    for child in folder.iterdir():
        if child.is_dir():
            remove_tree(child)
    return remove(folder)
