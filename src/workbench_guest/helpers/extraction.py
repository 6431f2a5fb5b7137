"""`smart_file_extract`: the text of a document, by a process of its own that a broken file cannot hold up."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import Any

import workbench_guest
from workbench_guest.helpers.arguments import json_problem
from workbench_guest.helpers.paths import as_text, file_problem, located
from workbench_guest.helpers.shapes import say_beginning

MODULE = "workbench_guest.extract"
# Within the time of a cell, so that there is an error to read instead of a cell that was ended.
EXTRACT_TIMEOUT_S = 170.0
# What was killed is gone at once, unless it is stuck in the kernel.
_END_TIMEOUT_S = 5.0
_LAST_WORDS = 300
OUT_OF_MEMORY = "ran out of memory: choose a larger tier or split the file"


def smart_file_extract(sandbox_file_path: str | os.PathLike[str], show_preview: bool = True) -> tuple[str, str]:
    """The text of a document: PDF, Word, slides, sheets, web pages, pictures of text, plain text.

        text, error = smart_file_extract("/mnt/files/contract.pdf")

    Args:
        sandbox_file_path: a file of the sandbox.
        show_preview: False prints nothing; else the first 500 characters, and how many there are.

    Returns:
        `(text, error)`: all of the text and `""`, or `""` and what went wrong. Never raises for a file that cannot be
        read. It takes at most 170 seconds.
    """
    return extract(sandbox_file_path, show_preview, EXTRACT_TIMEOUT_S)


def extract(path: Any, show_preview: bool, timeout_s: float) -> tuple[str, str]:
    """As `smart_file_extract`, within `timeout_s`."""
    text, problem = as_text("sandbox_file_path", path)
    whole = located(text) if not problem else ""
    problem = problem or file_problem("sandbox_file_path", whole, text) or json_problem("sandbox_file_path", whole)
    if problem:
        return "", problem
    try:
        code, said, complaint = _run(whole, timeout_s)
    except subprocess.TimeoutExpired:
        return "", f"no text of {text} within {timeout_s:g} s: split the file, or read a part of it with a library"
    except OSError as failure:
        return "", f"the extraction could not be started: {failure.strerror or failure}"
    found, error = _read(code, said, complaint)
    if error:
        return "", f"{text}: {error}"
    if show_preview:
        say_beginning(found)
    return found, ""


def _run(path: str, timeout_s: float) -> tuple[int, bytes, bytes]:
    """Its code and what it said; ended with all that it started if it takes too long, or if we are interrupted."""
    # Not by this file's own path: a kernel was imported where the package lies under another name.
    root = os.path.dirname(os.path.abspath(next(iter(workbench_guest.__path__))))
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, path],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # From there and not from the agent's folder, where a json.py may lie.
        cwd=root,
        env={**os.environ, "PYTHONPATH": root, "PYTHONIOENCODING": "utf-8"},
        start_new_session=True,
    )
    try:
        said, complaint = process.communicate(timeout=timeout_s)
    finally:
        _end(process)
    return process.returncode, said, complaint


def _end(process: subprocess.Popen[bytes]) -> None:
    """With its whole group, also what it may have left behind."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_END_TIMEOUT_S)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _read(code: int, said: bytes, complaint: bytes) -> tuple[str, str]:
    last_words = complaint.decode("utf-8", "replace").strip()
    if code == -signal.SIGKILL or "MemoryError" in last_words.rpartition("\n")[2]:
        return "", OUT_OF_MEMORY
    # Libraries may print on their own; the answer is the last line.
    lines = said.strip().splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else None
    except ValueError:
        answer = None
    if isinstance(answer, dict) and isinstance(answer.get("text"), str):
        error = str(answer.get("error") or "")
        return ("", error) if error else (answer["text"], "")
    how = f"ended by signal {-code}" if code < 0 else f"ended with code {code}"
    return "", f"the extraction {how} and without a text{': ' if last_words else ''}{last_words[-_LAST_WORDS:]}"
