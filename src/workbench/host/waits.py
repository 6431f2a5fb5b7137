"""How long a request may wait."""

from __future__ import annotations

from workbench.errors import InvalidRequest

# A client that wants to wait longer asks again; no request holds a connection for ever.
MAX_WAIT_S = 60.0


def bounded(wait_s: float) -> float:
    """What is waited at most.

    Raises:
        InvalidRequest: it is no time.
    """
    # Written so that a NaN, which no comparison holds for, is refused as well.
    if not wait_s >= 0:
        raise InvalidRequest(f"a wait must be 0 s or more, not {wait_s}")
    return min(wait_s, MAX_WAIT_S)
