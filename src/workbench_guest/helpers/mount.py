"""Paths of the sandbox's files, what is said when there is none, and links to files that lie in the mount."""

from __future__ import annotations

import os
import stat
from typing import Any

from workbench_guest.helpers import retrying
from workbench_guest.helpers.arguments import json_problem

MOUNT = "/mnt/files"
# Where an engine that isolates nothing has that folder.
MOUNT_VARIABLE = "WORKBENCH_FILES"
_NEAREST = 3
# A folder may have a million names; so many are compared.
_MOST_COMPARED = 5000


def mount_folder() -> str:
    """Where the mount is for this process."""
    return os.environ.get(MOUNT_VARIABLE) or MOUNT


def get_mount_file_url(file_path: str | os.PathLike[str]) -> tuple[str, str]:
    """A link to a file below /mnt/files, for people and programs outside of the sandbox; it holds for a while.

        url, error = get_mount_file_url("/mnt/files/report.pdf")

    Args:
        file_path: `/mnt/files/report.pdf`, or from there on: `report.pdf`. For a file elsewhere use upload_local_file.

    Returns:
        `(url, error)`: the link and `""`, or `""` and what went wrong. Never raises for a failed call.
    """
    path, problem = path_in_mount(file_path)
    if problem:
        return "", problem
    result, error, _ = retrying.ask("file_link", {"path": path})
    if error:
        return "", error
    url = result.get("url") if isinstance(result, dict) else None
    return (url, "") if isinstance(url, str) and url else ("", "the answer has no link")


def get_mount_file_s3_key(file_path: str | os.PathLike[str]) -> tuple[str, str]:
    """The key of a file below /mnt/files, for tools that take a file as `{"name", "mimetype", "s3key"}`.

        key, error = get_mount_file_s3_key("report.pdf")
        if not error:
            attachment = {"name": "report.pdf", "mimetype": "application/pdf", "s3key": key}

    Args:
        file_path: `/mnt/files/report.pdf`, or from there on: `report.pdf`. For a file elsewhere use upload_local_file.

    Returns:
        `(key, error)`: the key and `""`, or `""` and what went wrong. Never raises for a failed call.
    """
    path, problem = path_in_mount(file_path)
    if problem:
        return "", problem
    result, error, _ = retrying.ask("file_key", {"path": path})
    if error:
        return "", error
    return (result, "") if isinstance(result, str) and result else ("", "the answer has no key")


def path_in_mount(given: Any) -> tuple[str, str]:
    """The path of a regular file below the mount, as the workbench knows it; or what is wrong with it."""
    text, problem = as_text("file_path", given)
    if problem:
        return "", problem
    path = os.path.normpath(os.path.join(mount_folder(), _here(text)))
    below = inside_mount(path)
    if below is None:
        return "", f"{text} is not below {MOUNT}: upload_local_file gives a link to any file of the sandbox"
    if problem := file_problem("file_path", path, text):
        return "", problem
    return below, json_problem("file_path", below)


def located(text: str) -> str:
    """The whole path of a file of the sandbox."""
    return os.path.abspath(_here(text))


def _here(text: str) -> str:
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
