"""Asking again when the workbench says that it was too often, and in no other case: nothing is carried out twice."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from workbench_guest.helpers.calling import Answer, ask

RATE_LIMITED = "rate_limited"
DEFAULTS = {"max_retries": 3, "delay_ms": 2000}
MOST_RETRIES, MOST_DELAY_MS = 10, 60_000
# A wait has at most this much more, so that fifty threads that were refused at once do not come back at once.
_JITTER_S = 0.25


def checked(retry_params: Any) -> tuple[dict[str, int], str]:
    """The defaults with what the caller wants otherwise; and what is wrong with it, or nothing."""
    if retry_params is None:
        return dict(DEFAULTS), ""
    if not isinstance(retry_params, dict):
        return {}, f"retry_params has to be a dict like {DEFAULTS}, not {type(retry_params).__name__}"
    unknown = [repr(key) for key in retry_params if key not in DEFAULTS]
    if unknown:
        return {}, f"retry_params has no {', '.join(unknown)}: it takes max_retries and delay_ms"
    wanted = {**DEFAULTS, **retry_params}
    for name, most in (("max_retries", MOST_RETRIES), ("delay_ms", MOST_DELAY_MS)):
        value = wanted[name]
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            return {}, f"retry_params[{name!r}] has to be a whole number from 0 to {most}, not {value!r}"
    return wanted, ""


def ask_patiently(
    operation: str,
    arguments: dict[str, Any],
    retry: dict[str, int] | None = None,
    is_refusal: Callable[[Answer], bool] | None = None,
) -> Answer:
    """As `ask`, again after a while as long as the answer says that it was too often.

    `is_refusal` tells of answers that mean the same without its code.
    """
    wanted = retry or DEFAULTS
    attempt = 0
    while True:
        answer = ask(operation, arguments)
        refused = answer[2] == RATE_LIMITED or (is_refusal is not None and is_refusal(answer))
        if not refused or attempt >= wanted["max_retries"]:
            return answer
        time.sleep(_pause_s(wanted["delay_ms"], attempt))
        attempt += 1


def _pause_s(delay_ms: int, attempt: int) -> float:
    doubled = min(delay_ms * 2**attempt, MOST_DELAY_MS) / 1000
    # Not from `random`: a cell that has set its seed expects the numbers that follow from it.
    return float(doubled + min(_JITTER_S, doubled / 4) * os.urandom(1)[0] / 255)
