"""When a service is asked once more, and how long is waited before. Asking itself is left to `asking`."""

from __future__ import annotations

import email.utils
from dataclasses import dataclass
from datetime import UTC

PASSING = frozenset((429, 500, 502, 503, 504, 529))
"""statuses after which the same request may be answered; 529 is Anthropic's for too much load"""
LIMITED = 429
MOST_ATTEMPTS = 4
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 8.0
LONGEST_ASKED_FOR_S = 60.0
"""a service that wants more than this is told on: whoever asked has other things to do meanwhile"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How patient we are."""

    attempts: int = MOST_ATTEMPTS
    first_s: float = FIRST_PAUSE_S
    longest_s: float = LONGEST_PAUSE_S
    longest_asked_for_s: float = LONGEST_ASKED_FOR_S

    def pause_s(self, failures: int, asked_for_s: float | None, spread: float, left_s: float) -> float | None:
        """Before the next attempt; None if there is none. `spread` is from 0 to 1, by chance.

        Twice as long each time, and never the same for two who failed together. What the service asks for is the
        least that is waited.
        """
        if failures >= self.attempts:
            return None
        if asked_for_s is not None and asked_for_s > self.longest_asked_for_s:
            return None
        step = min(self.longest_s, self.first_s * 2 ** (failures - 1))
        pause = max(asked_for_s or 0.0, step * (0.5 + spread / 2))
        return pause if pause < left_s else None


def asked_for_s(retry_after: str, now: float) -> float | None:
    """Of a Retry-After header, which is seconds or a date; None if it is neither. `now` is since 1970."""
    text = retry_after.strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return float(text)
    try:
        until = email.utils.parsedate_to_datetime(text)
        # One that names no zone means ours, which no server knows.
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return max(0.0, until.timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None
