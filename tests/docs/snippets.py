"""Fenced blocks of a page: which are run, which are not and why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Those that a reader would type or send; `text` is for reading.
RUN = ("sh", "python", "json")
_BLOCK = re.compile(
    r"(?:^[ ]*<!-- not run: (?P<reason>[^>]+?) -->\n\s*)?"
    r"^(?P<fence>```+)(?P<kind>[^\n`]*)\n(?P<body>.*?)^(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """One block."""

    page: str
    line: int
    kind: str
    body: str
    reason: str
    """why it is not run; empty if it is"""


def pages() -> list[str]:
    """README and every page of docs, by path."""
    return ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]


def snippets(page: str, text: str | None = None) -> list[Snippet]:
    """Blocks of a page, in order."""
    text = (ROOT / page).read_text(encoding="utf-8") if text is None else text
    return [
        Snippet(
            page=page,
            line=text.count("\n", 0, found.start("fence")) + 1,
            kind=found["kind"].strip(),
            body=found["body"],
            reason=found["reason"] or "",
        )
        for found in _BLOCK.finditer(text)
    ]


def to_run(page: str, kind: str) -> list[Snippet]:
    """Blocks of one language that are run."""
    return [one for one in snippets(page) if one.kind == kind and not one.reason]
