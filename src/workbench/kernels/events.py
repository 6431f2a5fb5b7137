"""What a kernel publishes, in the words of the contract. Every field is a guest's: what does not fit is left out."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from workbench.contracts.kernel import Carried, Mended, Names, SnapshotAnswer
from workbench.errors import KernelUnavailable
from workbench.model.corrections import RULES, WHATS
from workbench.model.execution import (
    MOST_CORRECTIONS,
    CellError,
    Correction,
    CorrectionKind,
    Corrections,
    Display,
    Piece,
    PieceKind,
    RuleCount,
    Variable,
)

# What a decoder raises at a content that is no JSON, no text, nested without end, or of another shape.
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# As many as the guest tells, and no more whatever it says.
_MOST_NAMES = 200
_MOST_NAME = 200
_MOST_PATH = 4096
_MOST_THREADS = 5
_MOST_CARRIED = 10_000
_MOST_SENTENCE = 500
_MOST_COUNTED = 1_000_000
_KINDS = {"corrected": CorrectionKind.CORRECTED, "hint": CorrectionKind.HINT}


class _Stream(msgspec.Struct):
    name: str
    text: str


class _Shown(msgspec.Struct):
    data: dict[str, Any]
    metadata: dict[str, Any] = {}
    transient: dict[str, Any] = {}


class _Clear(msgspec.Struct):
    wait: bool = False


class _Error(msgspec.Struct):
    ename: str = ""
    evalue: str = ""
    traceback: list[str] = []


class _Input(msgspec.Struct):
    execution_count: int = 0


class _Status(msgspec.Struct):
    execution_state: str = ""


class Reply(msgspec.Struct):
    """Of an execute request."""

    status: str = "error"
    execution_count: int | None = 0

    @property
    def failed(self) -> bool:
        """What it answers raised."""
        return self.status == "error"


class _Snapshot(msgspec.Struct):
    status: str = "declined"
    reason: str = ""
    for_memory: bool = False
    cost_ms: float = 0.0
    threads: list[str] = []
    tasks: int = 0
    sockets: int = 0
    children: int = 0


class _Carried(msgspec.Struct):
    status: str = "ok"
    reason: str = ""
    carried: list[str] = []
    not_carried: dict[str, str] = {}
    cwd: str = ""


class _Correction(msgspec.Struct):
    kind: str = ""
    rule: str = ""
    text: str = ""
    line: int = 0
    times: int = 1


class _Receipt(msgspec.Struct):
    added: list[str] = []
    removed: list[str] = []
    rebound: list[str] = []
    more: int = 0
    cwd: str = ""
    corrections: list[_Correction] = []
    corrections_left_out: int = 0
    rules: dict[str, dict[str, int]] = {}


class _Metadata(msgspec.Struct):
    workbench: _Receipt = msgspec.field(default_factory=_Receipt)


class _Variables(msgspec.Struct):
    variables: list[Variable] = []


_stream = msgspec.json.Decoder(_Stream)
_shown = msgspec.json.Decoder(_Shown)
_clear = msgspec.json.Decoder(_Clear)
_error = msgspec.json.Decoder(_Error)
_input = msgspec.json.Decoder(_Input)
_status = msgspec.json.Decoder(_Status)
_reply = msgspec.json.Decoder(Reply)
_metadata = msgspec.json.Decoder(_Metadata)
_variables = msgspec.json.Decoder(_Variables)
_snapshot = msgspec.json.Decoder(_Snapshot)
_carried = msgspec.json.Decoder(_Carried)


def piece_of(kind: str, content: bytes) -> Piece | None:
    """The piece of output that a message is; None for those that are something else, or nothing."""
    try:
        return _piece(kind, content)
    except UnicodeDecodeError:
        # Half of a character pair, which Python can print and no encoding can carry.
        return piece_of(kind, content.decode("utf-8", "replace").encode())
    except _UNREADABLE:
        return None


def _piece(kind: str, content: bytes) -> Piece | None:
    match kind:
        case "stream":
            said = _stream.decode(content)
            stream = PieceKind.STDERR if said.name == "stderr" else PieceKind.STDOUT
            return Piece(kind=stream, text=said.text)
        case "display_data" | "execute_result" | "update_display_data":
            return _shown_piece(kind, _shown.decode(content))
        case "clear_output":
            return Piece(kind=PieceKind.CLEAR, wait=_clear.decode(content).wait)
        case "error":
            return Piece(kind=PieceKind.ERROR, error=_raised(_error.decode(content)))
    return None


def _shown_piece(kind: str, shown: _Shown) -> Piece:
    data = {mime: value if isinstance(value, str) else _json(value) for mime, value in shown.data.items()}
    display = Display(
        data=data,
        metadata=_json(shown.metadata),
        display_id=str(shown.transient.get("display_id", "")),
        is_result=kind == "execute_result",
    )
    return Piece(kind=PieceKind.UPDATE if kind == "update_display_data" else PieceKind.DISPLAY, display=display)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _raised(error: _Error) -> CellError:
    traceback = _COLOURS.sub("", "\n".join(error.traceback))
    return CellError(name=error.ename, message=_COLOURS.sub("", error.evalue), traceback=traceback)


def execution_count(content: bytes) -> int:
    """Of an execute_input."""
    try:
        return _input.decode(content).execution_count
    except _UNREADABLE:
        return 0


def execution_state(content: bytes) -> str:
    """Of a status."""
    try:
        return _status.decode(content).execution_state
    except _UNREADABLE:
        return ""


def reply(content: bytes) -> Reply:
    """Of an execute_reply."""
    try:
        return _reply.decode(content)
    except _UNREADABLE:
        return Reply()


def receipt(metadata: bytes) -> tuple[Names, str, Mended]:
    """What the guest says that the cell did to its names, where it stands now, and what was done for it."""
    try:
        told = _metadata.decode(metadata).workbench
    except _UNREADABLE:
        return Names(), "", Mended()
    names = Names(
        added=_bounded(told.added),
        removed=_bounded(told.removed),
        rebound=_bounded(told.rebound),
        more=max(0, min(told.more, 2**31)),
    )
    return names, told.cwd[:_MOST_PATH], _mended(told)


def _mended(told: _Receipt) -> Mended:
    # BARRIER: a guest may say what it likes of itself, but not that something was installed, nor under a name that is
    # not a rule's: names become labels of metrics. Held by tests/unit/kernels/test_events.py.
    items = tuple(
        Correction(
            kind=_KINDS[one.kind],
            rule=one.rule,
            text=_one_line(one.text)[:_MOST_SENTENCE],
            line=max(0, min(one.line, 2**31)),
            times=max(1, min(one.times, _MOST_COUNTED)),
        )
        for one in told.corrections[:MOST_CORRECTIONS]
        if one.kind in _KINDS and one.rule in RULES
    )
    counts = tuple(
        RuleCount(rule=rule, **{what: max(0, min(counted.get(what, 0), _MOST_COUNTED)) for what in WHATS})
        for rule, counted in told.rules.items()
        if rule in RULES
    )
    left_out = max(0, min(told.corrections_left_out, _MOST_COUNTED))
    return Mended(corrections=Corrections(items=items, left_out=left_out), rules=counts)


def _one_line(text: str) -> str:
    """Not to be taken for several, of which one is by somebody else."""
    return " ".join(_COLOURS.sub("", text).split())


def _bounded(names: list[str]) -> tuple[str, ...]:
    return tuple(name[:_MOST_NAME] for name in names[:_MOST_NAMES])


def variables(content: bytes, most: int) -> tuple[Variable, ...]:
    """Of our own variables reply."""
    try:
        return tuple(_variables.decode(content).variables[:most])
    except _UNREADABLE:
        return ()


def snapshot(content: bytes) -> SnapshotAnswer:
    """Of our own snapshot reply."""
    try:
        told = _snapshot.decode(content)
    except _UNREADABLE:
        return SnapshotAnswer(declined="the kernel's answer cannot be read")
    if told.status != "ok":
        return SnapshotAnswer(
            declined=told.reason[:_MOST_NAME] or "the kernel declined", declined_for_memory=told.for_memory
        )
    lost = []
    if told.threads:
        names = ", ".join(name[:_MOST_NAME] for name in told.threads[:_MOST_THREADS])
        lost.append(f"{_counted(len(told.threads), 'thread')} ({names})")
    if told.tasks > 0:
        lost.append(_counted(told.tasks, "asyncio task"))
    if told.sockets > 0:
        lost.append(_counted(told.sockets, "network connection"))
    if told.children > 0:
        lost.append(_counted(told.children, "child process", "child processes"))
    cost_s = told.cost_ms / 1000 if 0 <= told.cost_ms < 2**31 else 0.0
    return SnapshotAnswer(cost_s=cost_s, not_carried=", ".join(lost))


def carried(content: bytes) -> Carried:
    """Of a report on packed variables.

    Raises:
        KernelUnavailable: it says that there are none to be had.
    """
    try:
        told = _carried.decode(content)
    except _UNREADABLE:
        raise KernelUnavailable("the report on the variables cannot be read") from None
    if told.status != "ok":
        raise KernelUnavailable(f"the variables cannot be read: {told.reason[:_MOST_NAME]}")
    failed = list(told.not_carried.items())[:_MOST_CARRIED]
    return Carried(
        names=tuple(name[:_MOST_NAME] for name in told.carried[:_MOST_CARRIED]),
        not_carried={name[:_MOST_NAME]: reason[:_MOST_NAME] for name, reason in failed},
        working_folder=told.cwd[:_MOST_PATH],
    )


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{min(number, 2**31)} {one if number == 1 else many or one + 's'}"
