"""Meaning: how near the meaning of a question is to the meanings of texts that are known beforehand.

For the author of the next one: what is asked is not trusted, and who asks waits. Every call is bounded in time; what
takes longer goes on by itself, and counts from when it is ready. Nothing leaves the machine unless its operator asked
for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Meanings(Protocol):
    """Of some texts, in the order in which they were given. Owned by nobody: it is dropped when nobody needs it."""

    async def alike(self, questions: Sequence[str]) -> Sequence[Sequence[float]]:
        """For each question a number for each text: 1 for the same meaning, 0 for nothing in common.

        Not a number (`nan`) for a text that is still to be learned; ask again later. Questions are cut where they are
        too long. May be asked by several at a time.
        """
        ...


class Meaning(Protocol):
    """Owned by who wired it."""

    def why_not(self) -> str:
        """Why meanings cannot be compared here, and what to do about it; empty if they can. Quick, and never raises."""
        ...

    async def of(self, texts: Sequence[str]) -> Meanings:
        """Learn these. The same texts are not learned twice.

        Raises:
            NotConfigured: for the reason that `why_not` gives.
        """
        ...
