"""One feature of notebooks: something done with a kernel, and what must come of it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.kernel.notebook import Answer, Notebook

Play = Callable[[Notebook], Awaitable[None]]


@dataclass(frozen=True)
class Feature:
    """`play` raises an AssertionError, or a TimeoutError, where the feature does not work."""

    name: str
    play: Play


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Of the last cell; what is None is not looked at. The texts are patterns that must be found, but for `result`."""

    stdout: str | None = None
    stderr: str | None = None
    result: str | None = None
    """the whole"""
    value: str | None = None
    """the same as a pattern"""
    shows: tuple[str, str] | None = None
    """a mime type, and a pattern for it"""
    paged: str | None = None
    raises: str | None = None
    """the exception's name"""
    traceback: str | None = None

    def check(self, answer: Answer) -> None:
        if self.raises is None:
            assert answer.reply["status"] == "ok", answer
        else:
            assert answer.error.get("ename") == self.raises, answer
            assert answer.reply["status"] == "error", answer
        if self.result is not None:
            assert answer.result == self.result, answer
        if self.shows is not None:
            mime, pattern = self.shows
            shown = answer.shown(mime)
            assert shown, answer
            _find(pattern, str(shown[-1]), answer)
        for wanted, text in (
            (self.stdout, answer.stdout),
            (self.stderr, answer.stderr),
            (self.value, answer.result or ""),
            (self.paged, answer.paged()),
            (self.traceback, plain("\n".join(answer.error.get("traceback", [])))),
        ):
            if wanted is not None:
                _find(wanted, text, answer)


def _find(pattern: str, text: str, answer: Answer) -> None:
    assert re.search(pattern, text, re.DOTALL | re.MULTILINE), f"{pattern!r} is not in {text!r}: {answer}"


def plain(text: str) -> str:
    """Without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def cells(name: str, *codes: str, **expected: str | tuple[str, str]) -> Feature:
    """Cells that are run one after another, and what the last of them must give."""
    wanted = Expected(**expected)  # type: ignore[arg-type]

    async def play(notebook: Notebook) -> None:
        for code in codes[:-1]:
            assert (await notebook.run(code)).reply["status"] == "ok"
        wanted.check(await notebook.run(codes[-1]))

    return Feature(name, play)
