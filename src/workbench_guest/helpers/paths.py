"""Paths of files that a caller names: what each really is, and what is said when there is none."""

from __future__ import annotations

import os
import stat
from typing import Any

MOUNT = "/mnt/files"
# Where an engine that isolates nothing has that folder.
MOUNT_VARIABLE = "WORKBENCH_FILES"
_NEAREST = 3
# A folder may have a million names; so many are compared.
_MOST_COMPARED = 5000


def mount_folder() -> str:
    """Where the mount is for this process."""
    return os.environ.get(MOUNT_VARIABLE) or MOUNT


def located(text: str) -> str:
    """The whole path of a file of the sandbox."""
    return os.path.abspath(in_this_mount(text))


def in_this_mount(text: str) -> str:
    """People write `/mnt/files` wherever the folder is."""
    if text == MOUNT or text.startswith(MOUNT + "/"):
        return mount_folder() + text[len(MOUNT) :]
    return text


def inside_mount(path: str) -> str | None:
    """The path below the mount of what `path` really is; None for what lies elsewhere."""
    top, real = os.path.realpath(mount_folder()), os.path.realpath(path)
    return os.path.relpath(real, top) if real.startswith(top.rstrip("/") + "/") else None


def as_text(name: str, given: Any) -> tuple[str, str]:
    """A path as it was given, with `~` for home; or what is wrong with it."""
    if not isinstance(given, (str, os.PathLike)):
        return "", f"{name} has to be a path, not {type(given).__name__}"
    text = os.fspath(given)
    if not isinstance(text, str):
        return "", f"{name} has to be a path as text, not {type(text).__name__}"
    if not text.strip() or "\0" in text:
        return "", f"{name} is empty" if not text.strip() else f"{name} is not a path: {text!r}"
    return os.path.expanduser(text), ""


def file_problem(name: str, path: str, text: str) -> str:
    """Why `path`, given as `text`, is no regular file that can be read; empty if it is one."""
    try:
        mode = os.stat(path).st_mode
    except OSError as problem:
        return missing(path, text) if isinstance(problem, FileNotFoundError) else f"{text}: {problem.strerror}"
    if stat.S_ISDIR(mode):
        return f"{name} has to be a file, and {text} is a folder: upload_local_file makes a zip of a folder"
    if not stat.S_ISREG(mode):
        return f"{name} has to be a file, and {text} is a pipe, a socket or a device"
    return "" if os.access(path, os.R_OK) else f"{text}: no permission to read it"


def missing(path: str, text: str) -> str:
    """That there is no such file, and which ones have names like it."""
    folder, name = os.path.split(path.rstrip("/"))
    if not os.path.isdir(folder):
        while folder and not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        return f"no such file: {text}; of its folders only {folder or '.'} is there"
    import difflib  # here, as most calls succeed

    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_MOST_COMPARED))]  # noqa: B905  as many as there are
    except OSError:
        names = []
    folded = {one.lower(): one for one in names}
    near = [folded[one] for one in difflib.get_close_matches(name.lower(), folded, _NEAREST, 0.5)]
    hint = f"; near it: {', '.join(sorted(near))}" if near else f"; {folder} has no name like it"
    return f"no such file: {text}{hint}"
