"""What reading a file gives, and the one way in which it fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """The text of one file. With an error beside it the text is what could be read all the same."""

    text: str = ""
    error: str = ""
    """empty if all of it was read; else what is wrong and what to do next"""
    pages: int = 0
    """pages, slides, sheets or frames; 1 for what has none of these"""
    kind: str = ""
    """what the content says it is; empty if nobody could look"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Something to read, opened by whoever made this."""

    name: str
    """for messages, and for what the content does not tell"""
    file: BinaryIO
    size: int
    depth: int = 0
    """how many mails it lies in"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The text of a page, or of a part that has none."""

    text: str
    warning: str = ""
    """what of it is missing, and what to do next"""
    after: str = "\n\n"
    """what stands between it and the one before"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file that is being read; its pieces come one by one, so that only one is in memory."""

    pages: int
    pieces: Iterator[Piece]
    resumable: bool = False
    """a piece is a page, and reading can begin at any of them"""


class Unreadable(Exception):
    """The file cannot be read; the message names it and the next step."""
