"""Files of the box into the session's mount, and links to those that lie there."""

from __future__ import annotations

import contextlib
import mimetypes
import os
import posixpath
import tempfile
import urllib.parse
from collections.abc import Iterator
from typing import IO, Any

from workbench_guest.helpers.archive import Contents, NothingToPack, numbered, open_regular, write
from workbench_guest.helpers.arguments import json_problem
from workbench_guest.helpers.paths import MOUNT, as_text
from workbench_guest.helpers.retrying import ask_patiently
from workbench_guest.helpers.uploadable import UNFINISHED, checked_paths
from workbench_guest.local.asking import MissingCredential, Unanswered, get, post, put, session_path
from workbench_guest.local.calling import file_key, link_to, mount_path, refusal

UPLOADS = "uploads"
# Names that are tried before giving up.
_MOST_TRIES = 50
_TAKEN = 412
_NOT_THERE = 404


def upload_local_file(*file_paths: str | os.PathLike[str]) -> tuple[dict[str, Any], str]:
    """Hand files out of this box: a link to a file, or to one zip of several files and folders.

        result, error = upload_local_file("report.pdf")
        print(result["s3_url"])
        result, error = upload_local_file("chart.png", "data/")       # one zip

    They are sent to the session's mount, below /mnt/files/uploads, under another number if the name is taken. Links
    inside a folder are not followed out of it, and pipes, sockets and devices are left out; the message says what was.
    A failed upload leaves nothing behind.

    Args:
        *file_paths: any files and folders of this box.

    Returns:
        `(result, error)`. On success `{"s3_url", "uploaded_file", "type", "id", "s3key", "message"}` and `""`, where
        `uploaded_file` is where it lies in the mount; else `{}` and what went wrong. Never raises for a failed call.
    """
    paths, problem = checked_paths(file_paths)
    if problem:
        return {}, problem
    try:
        if len(paths) == 1 and not os.path.isdir(paths[0]):
            with open_regular(paths[0]) as source:
                return _uploaded(os.path.basename(paths[0]), source, "")
        contents = Contents(paths, UNFINISHED)
        with tempfile.TemporaryFile() as archive:
            write(contents, archive)
            archive.seek(0)
            return _uploaded(contents.name, archive, contents.note)
    except (NothingToPack, Unanswered, MissingCredential) as failure:
        return {}, str(failure)
    except OSError as failure:
        where = f" ({failure.filename})" if failure.filename else ""
        return {}, f"the upload failed: {failure.strerror or failure}{where}"


def get_mount_file_url(file_path: str | os.PathLike[str]) -> tuple[str, str]:
    """A link to a file of the session's mount, for people and programs anywhere; it holds for a while.

        url, error = get_mount_file_url("/mnt/files/report.pdf")

    Args:
        file_path: `/mnt/files/report.pdf`, or from there on: `report.pdf`. For a file of this box: upload_local_file.

    Returns:
        `(url, error)`: the link and `""`, or `""` and what went wrong. Never raises for a failed call.
    """
    path, problem = path_below_mount(file_path)
    if problem:
        return "", problem
    result, error, _ = ask_patiently("file_link", {"path": path})
    return ("", error) if error else (str(result["url"]), "")


def get_mount_file_s3_key(file_path: str | os.PathLike[str]) -> tuple[str, str]:
    """The key of a file of the session's mount, for tools that take a file as `{"name", "mimetype", "s3key"}`.

        key, error = get_mount_file_s3_key("report.pdf")

    Args:
        file_path: `/mnt/files/report.pdf`, or from there on: `report.pdf`. For a file of this box: upload_local_file.

    Returns:
        `(key, error)`: the key and `""`, or `""` and what went wrong. Never raises for a failed call.
    """
    path, problem = path_below_mount(file_path)
    if problem:
        return "", problem
    result, error, _ = ask_patiently("file_key", {"path": path})
    return ("", error) if error else (str(result), "")


def path_below_mount(given: Any) -> tuple[str, str]:
    """The path of a file as the mount has it; or what is wrong with it."""
    text, problem = as_text("file_path", given)
    if problem:
        return "", problem
    path = posixpath.normpath(posixpath.join(MOUNT, text))
    if not path.startswith(MOUNT + "/"):
        return "", f"{text} is not below {MOUNT}: upload_local_file gives a link to any file of this box"
    below = path[len(MOUNT) + 1 :]
    return below, json_problem("file_path", below)


def _uploaded(name: str, source: IO[bytes], note: str) -> tuple[dict[str, Any], str]:
    if problem := json_problem("the name of the file", name):
        return {}, f"{problem}; rename it"
    for number in range(1, _MOST_TRIES):
        path = f"{UPLOADS}/{name if number == 1 else numbered(name, number)}"
        if _is_taken(path):
            continue
        source.seek(0)
        version, error, taken = put_into_mount(path, source, only_if_new=True)
        if not taken:
            return ({}, error) if error else _linked(path, version, note)
    return {}, f"{MOUNT}/{UPLOADS} has too many files called {name}: rename it"


def _linked(path: str, version: str, note: str) -> tuple[dict[str, Any], str]:
    """The result; without a link what was sent goes away again."""
    with contextlib.ExitStack() as undoing:
        undoing.callback(remove_from_mount, path)
        link, error = link_to(path)
        if error:
            return {}, error
        undoing.pop_all()
    until = f", until {link['expires_at']}" if link.get("expires_at") else ""
    whole, key = f"{MOUNT}/{path}", file_key(path)
    return {
        "s3_url": link["download_url"],
        "uploaded_file": whole,
        "type": _type_of(path),
        "id": f"{key.partition('/')[0]}-{version}" if key else version,
        "s3key": key,
        "message": f"{whole}{note} can be had from the link{until}",
    }, ""


def _is_taken(path: str) -> bool:
    """Before anything large is sent; the link itself has the last word."""
    query = urllib.parse.urlencode({"mount_relative_prefix": path, "limit": 1})
    reply = get(f"{mount_path('items')}?{query}")
    items = reply.value.get("items") if isinstance(reply.value, dict) else None
    found = items[0] if isinstance(items, list) and items else None
    # By path: the shortest one that begins so is the first.
    return isinstance(found, dict) and found.get("mount_relative_path") == path


def put_into_mount(path: str, source: IO[bytes], only_if_new: bool) -> tuple[str, str, bool]:
    """Send a file: its version, what went wrong, and whether that is that the name is taken.

    Raises:
        Unanswered: nobody answered.
        MissingCredential: there is nothing to ask with.
        OSError: it cannot be read.
    """
    kind = _type_of(path)
    reply = post(mount_path("upload_url"), {"mount_relative_path": path, "mimetype": kind})
    link = reply.value.get("upload_url") if isinstance(reply.value, dict) else None
    if not 200 <= reply.status < 300 or not isinstance(link, str):
        return "", refusal(reply, "the upload")[1], False
    headers = {"Content-Type": kind, **({"If-None-Match": "*"} if only_if_new else {})}
    size = os.fstat(source.fileno()).st_size
    try:
        done = put(link, source, size, headers)
    except Unanswered as failure:
        if told := _no_room(size):
            return "", told, False
        raise failure
    if done.status == _TAKEN:
        return "", "the name is taken", True
    if not 200 <= done.status < 300:
        return "", refusal(done, "the upload")[1], False
    return str(done.value.get("version") or "") if isinstance(done.value, dict) else "", "", False


def _no_room(size: int) -> str:
    """Who refuses a large file need not read it to say so, and its word may be lost with the connection."""
    try:
        told = get(f"{session_path('/v1/sessions')}/mounts/files").value
    except (Unanswered, MissingCredential):
        return ""
    most, used = (told.get("most_bytes"), told.get("bytes")) if isinstance(told, dict) else (None, None)
    if not isinstance(most, int) or not isinstance(used, int) or size <= most - used:
        return ""
    left = f"{max(most - used, 0):,}"
    return f"no room in {MOUNT} for this: it has {size:,} bytes, and {left} are left; remove files there"


def remove_from_mount(path: str) -> str:
    """What went wrong with it, if anything; that it is not there is no problem. Raises nothing."""
    try:
        reply = post(mount_path("delete"), {"mount_relative_path": path})
    except (Unanswered, MissingCredential) as failure:
        return str(failure)
    return "" if reply.status < 300 or reply.status == _NOT_THERE else refusal(reply, "the removal")[1]


@contextlib.contextmanager
def lent_to_mount(source: IO[bytes], ending: str) -> Iterator[str]:
    """A file in the mount for as long as this lasts, under a name that nobody else has.

    Raises:
        Unanswered: it could not be sent; the message says why.
        MissingCredential: there is nothing to ask with.
        OSError: it cannot be read.
    """
    path = f".lent-{os.urandom(8).hex()}{ending}"
    try:
        _, error, _ = put_into_mount(path, source, only_if_new=True)
        if error:
            raise Unanswered("refused", error)
        yield path
    finally:
        # Also of an upload without an answer: it may have arrived.
        remove_from_mount(path)


def _type_of(path: str) -> str:
    return mimetypes.guess_type(path)[0] or "application/octet-stream"
