"""`upload_local_file`: a file of the sandbox into the mount, if it is not there, and a link to it."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from typing import IO, Any

from workbench_guest.helpers.paths import MOUNT, inside_mount, mount_folder
from workbench_guest.helpers.retrying import ask_patiently
from workbench_guest.helpers.uploadable import UNFINISHED, checked_paths

UPLOADS = "uploads"
# Names that are tried before giving up: with one program that takes them all.
_MOST_TRIES = 10_000
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES)


def upload_local_file(*file_paths: str | os.PathLike[str]) -> tuple[dict[str, Any], str]:
    """Hand files out of the sandbox: a link to a file, or to one zip of several files and folders.

        result, error = upload_local_file("/home/user/report.pdf")
        print(result["s3_url"])
        result, error = upload_local_file("chart.png", "data/")       # one zip

    A file is copied to /mnt/files/uploads, under another number if the name is taken; one that lies below /mnt/files
    already is linked to where it is. Links inside a folder are not followed out of it, and pipes, sockets and devices
    are left out; the message says what was. A failed upload leaves nothing behind.

    Args:
        *file_paths: any files and folders of the sandbox.

    Returns:
        `(result, error)`. On success `{"s3_url", "uploaded_file", "type", "id", "s3key", "message"}` and `""`, where
        `uploaded_file` is where it lies now; else `{}` and what went wrong. Never raises for a failed call.
    """
    paths, problem = checked_paths(file_paths)
    if problem:
        return {}, problem
    try:
        if len(paths) == 1 and not os.path.isdir(paths[0]):
            below = inside_mount(paths[0])
            if below is not None:
                return _linked(below, "")
            return _uploaded(os.path.basename(paths[0]), lambda target: _copy(paths[0], target))
        return _uploaded_archive(paths)
    except OSError as failure:
        return {}, _explained(failure)


def _uploaded_archive(paths: list[str]) -> tuple[dict[str, Any], str]:
    # Here, as it loads a library that most sessions never use.
    from workbench_guest.helpers.archive import Contents, NothingToPack, write

    try:
        contents = Contents(paths, UNFINISHED)
    except NothingToPack as problem:
        return {}, str(problem)
    return _uploaded(contents.name, lambda target: write(contents, target), contents.note)


def _copy(path: str, target: IO[bytes]) -> None:
    from workbench_guest.helpers import archive

    with archive.open_regular(path) as source:
        archive.copy(source, target)


def _uploaded(name: str, fill: Callable[[IO[bytes]], None], note: str = "") -> tuple[dict[str, Any], str]:
    """Into the mount under a free name, and a link to it; without the link it goes away again."""
    with _uploads_folder() as folder:
        path = _written(folder, name, fill)
        linked = False
        try:
            below = inside_mount(path)
            if below is None:
                return {}, f"{MOUNT}/{UPLOADS} leads out of {MOUNT}: remove it, and try again"
            result, error = _linked(below, note)
            linked = not error
            return result, error
        finally:
            if not linked:
                with contextlib.suppress(OSError):
                    os.unlink(path)


@contextlib.contextmanager
def _uploads_folder() -> Iterator[str]:
    folder = os.path.join(mount_folder(), UPLOADS)
    made = False
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
        made = True
    try:
        yield folder
    finally:
        if made:
            # Only if it is empty: the upload failed, and nobody else has put anything there.
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def _written(folder: str, name: str, fill: Callable[[IO[bytes]], None]) -> str:
    """Whole under an unfinished name first; the path that it has in the end."""
    unfinished = os.path.join(folder, f"{UNFINISHED}{os.urandom(8).hex()}")
    try:
        with _opened(unfinished) as target:
            fill(target)
        return _named(unfinished, folder, name)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)


def _opened(path: str) -> IO[bytes]:
    try:
        return open(path, "xb")
    except FileNotFoundError:
        # Another upload has failed just now, and taken its empty folder away.
        with contextlib.suppress(FileExistsError):
            os.mkdir(os.path.dirname(path))
        return open(path, "xb")


def _named(unfinished: str, folder: str, name: str) -> str:
    from workbench_guest.helpers.archive import numbered

    for number in range(1, _MOST_TRIES):
        path = os.path.join(folder, name if number == 1 else numbered(name, number))
        with contextlib.suppress(FileExistsError):
            _take(path, unfinished)
            return path
    raise OSError(errno.EEXIST, f"{MOUNT}/{UPLOADS} has too many files called {name}")


def _take(path: str, unfinished: str) -> None:
    """Give it that name if nobody has it: unlike a rename, this replaces nothing.

    Raises:
        FileExistsError: somebody has it.
    """
    try:
        os.link(unfinished, path, follow_symlinks=False)
    except OSError as problem:
        if problem.errno not in _NO_HARD_LINKS:
            raise
        # The name is ours from here on, with nothing in it for a moment.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
        os.replace(unfinished, path)


def _linked(below: str, note: str) -> tuple[dict[str, Any], str]:
    from workbench_guest.helpers.arguments import json_problem

    if problem := json_problem("the name of the file", below):
        return {}, f"{problem}; rename it"
    link, error, _ = ask_patiently("file_link", {"path": below})
    if error:
        return {}, error
    if not isinstance(link, dict) or not link.get("url"):
        return {}, "the answer has no link"
    until = f", until {link['expires_at']}" if link.get("expires_at") else ""
    path = os.path.join(mount_folder(), below)
    return {
        "s3_url": link["url"],
        "uploaded_file": path,
        "type": link.get("type") or "",
        "id": link.get("id") or "",
        "s3key": link.get("key") or "",
        "message": f"{path}{note} can be had from the link{until}",
    }, ""


def _explained(failure: OSError) -> str:
    if failure.errno in _NO_ROOM:
        return f"no room in {MOUNT} for this upload ({failure.strerror}): remove files there, or upload less"
    if isinstance(failure, NotADirectoryError):
        return f"{MOUNT}/{UPLOADS} is a file and not a folder: rename it, and try again"
    where = f" ({failure.filename})" if failure.filename else ""
    return f"the upload failed: {failure.strerror or failure}{where}"
