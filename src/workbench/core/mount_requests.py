"""One value for each operation on the files of a session from outside, and for the answers to it."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.model.ids import ProjectId, SessionId
from workbench.model.mounts import DEFAULT_LINK_S, DEFAULT_PAGE, FILES, FilePath, LinkAction, MountFile, MountUse, Quota


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFiles:
    """A page of the files in a session's mount, by path."""

    session: SessionId
    mount: str = FILES
    prefix: str = ""
    """only those whose path begins so"""
    after: str = ""
    """`next_after` of the page before"""
    limit: int = DEFAULT_PAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenMountFile:
    """A file in a session's mount, to be read from outside."""

    session: SessionId
    path: str
    mount: str = FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFile:
    """A file on its way into a session's mount."""

    session: SessionId
    path: str
    mount: str = FILES
    name: str = ""
    """of an upload that may be gone on with later; empty for one that is made in one go"""
    size: int | None = None
    """in the end, if that is known"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchFile:
    """A file for a session's mount from another server."""

    session: SessionId
    url: str
    path: str = ""
    """empty for the name that the other server gives it; one that ends with a slash is a folder for that name"""
    mount: str = FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractText:
    """The text of a file in a session's mount, be it a PDF, a picture or a table."""

    session: SessionId
    path: str
    mount: str = FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedText:
    """What can be read in it."""

    path: FilePath
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    """A file of a session's mount, or a folder with all in it."""

    session: SessionId
    path: str
    mount: str = FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedFiles:
    """What is no more."""

    path: FilePath
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeMount:
    """How much is in a session's mount."""

    session: SessionId
    mount: str = FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class MountDescription:
    """How much is in it, and how much may be."""

    use: MountUse
    quota: Quota


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeLink:
    """A link to one file of a session's mount, for whoever has it, for a while."""

    session: SessionId
    path: str
    action: LinkAction
    mount: str = FILES
    lifetime_s: int = DEFAULT_LINK_S
    size: int | None = None
    """of what is to be uploaded, if it is known: another one is refused"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLink:
    """What a link is for. Whoever has a good one may do this, and nothing else."""

    session: SessionId
    project: ProjectId
    mount: str
    path: FilePath
    action: LinkAction
    expires: int
    """seconds since 1970"""
    size: int | None = None
    """of what is to be uploaded, if whoever asked for the link has said it"""
    upload: str = ""
    """one of its own for every link to upload to: two that are made in the same second are two uploads"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedLink:
    """A link that was made."""

    link: FileLink
    signature: str
    expires_at: str
    """ISO 8601, UTC"""
    file: MountFile | None = None
    """of a link for downloading: as it was when the link was made"""
