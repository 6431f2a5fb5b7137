"""Links to files that lie in the mount, and their keys."""

from __future__ import annotations

import os
from typing import Any

from workbench_guest.helpers.arguments import json_problem
from workbench_guest.helpers.paths import MOUNT, as_text, file_problem, in_this_mount, inside_mount, mount_folder
from workbench_guest.helpers.retrying import ask_patiently


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
    result, error, _ = ask_patiently("file_link", {"path": path})
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
    result, error, _ = ask_patiently("file_key", {"path": path})
    if error:
        return "", error
    return (result, "") if isinstance(result, str) and result else ("", "the answer has no key")


def path_in_mount(given: Any) -> tuple[str, str]:
    """The path of a regular file below the mount, as the workbench knows it; or what is wrong with it."""
    text, problem = as_text("file_path", given)
    if problem:
        return "", problem
    path = os.path.normpath(os.path.join(mount_folder(), in_this_mount(text)))
    below = inside_mount(path)
    if below is None:
        return "", f"{text} is not below {MOUNT}: upload_local_file gives a link to any file of the sandbox"
    if problem := file_problem("file_path", path, text):
        return "", problem
    return below, json_problem("file_path", below)
