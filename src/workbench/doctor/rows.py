"""What a proof is made of: one row an attack, and how a row is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from workbench.doctor.accepted import ACCEPTED, ACCEPTED_WHERE_WATCHED
from workbench.model.capability import Barrier, Grade
from workbench_guest.attacks.registry import Attack, Judge


class Verdict(StrEnum):
    """What came of an attack."""

    BLOCKED = "blocked"
    CONTAINED = "contained"
    """it did something, and only inside"""
    ACCEPTED = "accepted"
    """it got through, and SECURITY.md says why that is so"""
    OPEN = "open"
    """it got through, or did something that nobody understands"""
    NOT_COUNTED = "not-counted"
    """it could not be made to work outside either, so failing inside proves nothing"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One attack: what came of it inside, and the control in which it worked."""

    name: str
    description: str
    verdict: Verdict
    inside: str
    control: str
    reason: str = ""
    """for accepted rows why it is, for open and not-counted rows what is wrong"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How one run of an attack ended: got, refused, hung, broken, ended by a limit, or lost with its sandbox."""

    end: str
    detail: str = ""
    amount: float = 0.0
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the host knows about the place where attacks ran."""

    canaries: Mapping[str, tuple[str, ...]]
    """by attack; "" for all others"""
    seen: frozenset[str]
    """attacks whose effect the host saw"""
    bounds: Mapping[str, float]
    grades: Mapping[Barrier, Grade] = field(default_factory=dict)


def got_through(attack: Attack, result: Result, where: Surroundings) -> bool:
    """Whether the attack reached its aim."""
    if attack.judge is Judge.SEEN:
        return attack.name in where.seen
    if result.end != "got":
        return False
    if attack.judge is Judge.CANARY:
        canaries = where.canaries.get(attack.name, where.canaries[""])
        return any(canary in result.detail for canary in canaries)
    if attack.judge is Judge.BOUNDED:
        return result.amount > where.bounds[attack.name]
    return True


def told(attack: Attack, result: Result, *, through: bool) -> str:
    """For people; never the canary or anything else that was read."""
    if attack.judge is Judge.CANARY and result.end == "got":
        return "found what the host put there" if through else "found nothing of the host's"
    if attack.judge is Judge.SEEN and result.end == "got":
        return "the host saw it" if through else "the host saw nothing of it"
    return result.detail or result.end


def row(attack: Attack, inside: Result, where: Surroundings, control: str | None, why_not: str) -> Row:
    """The verdict. `control` tells of the one that succeeded; None if none did, and then `why_not` says why."""
    through = got_through(attack, inside, where)
    verdict, reason = _verdict(attack, inside, where, through=through)
    if control is None and verdict is not Verdict.OPEN:
        verdict, reason = Verdict.NOT_COUNTED, why_not
    return Row(
        name=attack.name,
        description=attack.description,
        verdict=verdict,
        inside=told(attack, inside, through=through),
        control=control or "none succeeded",
        reason=reason,
    )


def _verdict(attack: Attack, inside: Result, where: Surroundings, *, through: bool) -> tuple[Verdict, str]:
    if through:
        reason = _acceptance(attack, where)
        return (Verdict.ACCEPTED, reason) if reason else (Verdict.OPEN, "it got through")
    if inside.end == "refused":
        return Verdict.BLOCKED, ""
    if inside.end == "got":
        return Verdict.CONTAINED, ""
    if inside.end in ("lost", "ended") and attack.alone:
        return Verdict.CONTAINED, ""
    # What nobody understands is not safe.
    return Verdict.OPEN, f"it was {inside.end}, which proves nothing"


def _acceptance(attack: Attack, where: Surroundings) -> str:
    if attack.name in ACCEPTED:
        return ACCEPTED[attack.name]
    if attack.name in ACCEPTED_WHERE_WATCHED:
        barrier, reason = ACCEPTED_WHERE_WATCHED[attack.name]
        if where.grades.get(barrier) is Grade.WATCHED:
            return reason
    return ""


def counted(rows: tuple[Row, ...]) -> int:
    """How many rows prove something."""
    return sum(row.verdict is not Verdict.NOT_COUNTED for row in rows)


def is_open(rows: tuple[Row, ...]) -> bool:
    """Whether any attack got through; the exit code of `doctor --prove`."""
    return any(row.verdict is Verdict.OPEN for row in rows)
