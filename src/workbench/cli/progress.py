"""A bar for who waits at a terminal; nothing for anybody else."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

import click

from workbench.cli.tables import plain

if TYPE_CHECKING:
    # Has no other name, and is needed for the checker alone.
    from click._termui_impl import ProgressBar

# Wider names push the bar off the line.
_LABEL = 32


class Progress:
    """How far some transfers are together, on stderr."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown and sys.stderr.isatty()
        self._bar: ProgressBar[int] | None = None

    def expect(self, count: int) -> None:
        """So many bytes are to come, in all."""
        if self._shown and count:
            bar: ProgressBar[int] = click.progressbar(length=count, file=sys.stderr)
            self._bar = bar.__enter__()

    def now(self, name: str) -> None:
        """Which one it is."""
        if self._bar is not None:
            shown = plain(name)
            self._bar.label = shown if len(shown) <= _LABEL else f"…{shown[1 - _LABEL :]}"

    def moved(self, count: int) -> None:
        """So many bytes more; less than nothing when a file is begun again."""
        if self._bar is not None and count:
            self._bar.update(count)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._bar is not None:
            # So that what is said next has a line of its own.
            self._bar.render_finish()
            self._bar = None
