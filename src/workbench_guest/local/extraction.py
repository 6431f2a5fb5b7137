"""`smart_file_extract`: the text of a document of this box, which the workbench reads and does not keep."""

from __future__ import annotations

import os
import re

from workbench_guest.helpers.archive import open_regular
from workbench_guest.helpers.arguments import json_problem
from workbench_guest.helpers.paths import MOUNT, as_text, file_problem, located
from workbench_guest.helpers.shapes import say_beginning
from workbench_guest.local.asking import MissingCredential, Unanswered, post, session_path
from workbench_guest.local.calling import refusal
from workbench_guest.local.files import lent_to_mount, path_below_mount

# More than the workbench gives itself for it.
EXTRACT_SILENCE_S = 240.0
# By which it is known what a file is; another one says nothing.
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,16}")


def smart_file_extract(sandbox_file_path: str | os.PathLike[str], show_preview: bool = True) -> tuple[str, str]:
    """The text of a document: PDF, Word, slides, sheets, web pages, pictures of text, plain text.

        text, error = smart_file_extract("contract.pdf")

    The file is sent to the workbench, which reads it in a sandbox and keeps nothing of it.

    Args:
        sandbox_file_path: a file of this box; or `/mnt/files/…`, a file of the session's mount, if there is no such
            folder here.
        show_preview: False prints nothing; else the first 500 characters, and how many there are.

    Returns:
        `(text, error)`: all of the text and `""`, or `""` and what went wrong. Never raises for a file that cannot be
        read.
    """
    given, problem = as_text("sandbox_file_path", sandbox_file_path)
    if problem:
        return "", problem
    try:
        text, error = _text_of(given)
    except (Unanswered, MissingCredential) as failure:
        return "", f"{given}: {failure}"
    except OSError as failure:
        return "", f"{given}: {failure.strerror or failure}"
    if show_preview and not error:
        say_beginning(text)
    return text, error


def _text_of(given: str) -> tuple[str, str]:
    path = located(given)
    if path.startswith(MOUNT + "/") and not os.path.exists(path):
        below, problem = path_below_mount(path)
        return ("", problem) if problem else _read_in_mount(below, given)
    if problem := file_problem("sandbox_file_path", path, given) or json_problem("sandbox_file_path", path):
        return "", problem
    ending = _ENDING.fullmatch(os.path.splitext(path)[1])
    with open_regular(path) as source, lent_to_mount(source, ending[0] if ending else "") as lent:
        return _read_in_mount(lent, given)


def _read_in_mount(path: str, given: str) -> tuple[str, str]:
    where = f"{session_path('/v1/sessions')}/mounts/files/extract_text"
    reply = post(where, {"path": path}, EXTRACT_SILENCE_S)
    if reply.status >= 300:
        error = reply.said.replace(path, given) or refusal(reply, "reading it")[1]
        return "", error if given in error else f"{given}: {error}"
    text = reply.value.get("text") if isinstance(reply.value, dict) else None
    return (text, "") if isinstance(text, str) else ("", f"{given}: the answer has no text")
