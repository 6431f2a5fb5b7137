"""What is in the way of a file, in words: which of the errors of the contract it is, and what to do next."""

from __future__ import annotations

import errno

from workbench.errors import Conflict, NotFound, StoreUnavailable, WorkbenchError
from workbench.guest_files import NotAFile


def nothing_there(path: str) -> NotFound:
    """For reading and deleting."""
    return NotFound(f"no such file: {path!r}; list the files to see what is there", {"path": path})


def unreadable(problem: OSError, path: str) -> WorkbenchError:
    """Why it was not read."""
    if isinstance(problem, NotAFile):
        hint = "list the files in it, and ask for those" if problem.what == "a folder" else "only files can be read"
        return Conflict(f"{path!r} is {problem.what}: {hint}", {"path": path})
    match problem.errno:
        case errno.ENOENT | errno.ENOTDIR | errno.ENAMETOOLONG:
            return nothing_there(path)
        case errno.ELOOP:
            return Conflict(
                f"{path!r} is a link, or leads through one, and links are not followed: ask for what it leads to",
                {"path": path},
            )
        case errno.EXDEV:
            return Conflict(f"{path!r} leads out of the mount: ask for what is in it", {"path": path})
        case errno.EAGAIN:
            return Conflict(f"{path!r} is being moved, or held by a lease: try again", {"path": path})
        case errno.EACCES | errno.EPERM:
            return Conflict(f"code inside has closed {path!r}: open it there by chmod u+rwX", {"path": path})
        case _:
            return StoreUnavailable(f"{path!r} cannot be read: {problem.strerror}", {"path": path})


def on_another_disk(path: str) -> StoreUnavailable:
    """What is staged cannot be renamed into its place."""
    return StoreUnavailable("`files` and `uploads` of the data folder must be on one disk; move them", {"path": path})


def undeleted(problem: OSError, path: str) -> WorkbenchError:
    """Why it is still there."""
    match problem.errno:
        case errno.ENOTEMPTY | errno.EEXIST:
            return Conflict(
                f"{path!r} is still written to, or has parts that are closed: stop what writes there, and delete it "
                "again",
                {"path": path},
            )
        case errno.EISDIR | errno.EBUSY | errno.ETIMEDOUT:
            return Conflict(f"{path!r} is being replaced or filled all the time: delete it again", {"path": path})
        case _:
            return unreadable(problem, path)


def unwritten(problem: OSError, path: str) -> WorkbenchError:
    """Why it is not in its place."""
    context = {"path": path}
    match problem.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return StoreUnavailable("the disk of the machine is full; who runs the workbench has to make room", context)
        case errno.EFBIG:
            return StoreUnavailable(f"{path!r} is larger than the disk of the machine takes: send less", context)
        case errno.EISDIR | errno.ENOTEMPTY:
            return Conflict(f"{path!r} is a folder: delete it first, or choose another name", context)
        case errno.ENOTDIR | errno.EEXIST:
            return Conflict(
                f"a part of {path!r} is a file and not a folder: delete that, or choose another name", context
            )
        case errno.ELOOP:
            return Conflict(
                f"a part of {path!r} is a link, which is not followed: choose the path it leads to", context
            )
        case errno.ENAMETOOLONG:
            return Conflict(f"{path!r} is too long for the disk: shorten it", context)
        case errno.EAGAIN | errno.ENOENT:
            return Conflict(f"folders on the way to {path!r} are being moved or deleted: try again", context)
        case errno.EACCES | errno.EPERM:
            return Conflict(f"code inside has closed a folder on the way to {path!r}: open it by chmod u+rwx", context)
        case errno.EXDEV:
            return Conflict(f"folders on the way to {path!r} lead out of the mount: choose another path", context)
        case _:
            return StoreUnavailable(f"{path!r} cannot be written: {problem.strerror}", context)
