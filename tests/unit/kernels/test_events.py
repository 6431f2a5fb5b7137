"""What a kernel publishes, in the words of the contract."""

from __future__ import annotations

import msgspec
import pytest

from workbench.contracts.kernel import Mended, Names
from workbench.kernels import events
from workbench.kernels.last_words import crash_report
from workbench.model.execution import CorrectionKind, PieceKind, RuleCount


def test_streams_keep_their_names() -> None:
    out = events.piece_of("stream", b'{"name": "stdout", "text": "a"}')
    err = events.piece_of("stream", b'{"name": "stderr", "text": "b"}')
    assert out is not None
    assert err is not None
    assert (out.kind, out.text, err.kind, err.text) == (PieceKind.STDOUT, "a", PieceKind.STDERR, "b")


def test_formats_that_are_no_text_are_json() -> None:
    content = msgspec.json.encode({"data": {"application/json": {"a": [1]}, "text/plain": "x"}, "metadata": {"m": 1}})
    shown = events.piece_of("execute_result", content)
    assert shown is not None
    assert shown.display is not None
    assert shown.display.data == {"application/json": '{"a":[1]}', "text/plain": "x"}
    assert shown.display.is_result


def test_a_clearing_says_whether_it_waits() -> None:
    found = [events.piece_of("clear_output", content) for content in (b'{"wait": true}', b"{}", b'{"wait": 5}')]
    assert [one and one.wait for one in found] == [True, False, None]


def test_a_traceback_loses_its_colours() -> None:
    content = msgspec.json.encode({"ename": "E", "evalue": "v", "traceback": ["\x1b[31mred\x1b[39m", "plain"]})
    raised = events.piece_of("error", content)
    assert raised is not None
    assert raised.error is not None
    assert raised.error.traceback == "red\nplain"


@pytest.mark.parametrize("kind", ["stream", "display_data", "error", "comm_open", "whatever"])
@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"7", b"\xff\xfe", b'{"text": 5}', b"[" * 100_000])
def test_what_makes_no_sense_is_left_out(kind: str, content: bytes) -> None:
    found = events.piece_of(kind, content)
    assert found is None or found.error is not None


def test_bytes_that_are_no_text_cost_no_more_than_themselves() -> None:
    """Python can print half a pair of characters; stock's encoder lets it out as a byte that no decoder takes."""
    piece = events.piece_of("stream", b'{"name": "stdout", "text": "a\x80b"}')
    assert piece is not None
    assert piece.text == "a\ufffdb"


def test_what_is_nested_without_end_is_left_out() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    assert events.piece_of("display_data", b'{"data": {"application/json": ' + deep + b"}}") is None


def test_a_receipt_that_claims_too_much_is_cut() -> None:
    names, folder, _ = events.receipt(
        msgspec.json.encode({"workbench": {"added": ["n" * 1000] * 1000, "more": 2**40, "cwd": "/" * 10_000}})
    )
    assert len(names.added) == 200
    assert len(names.added[0]) == 200
    assert names.more == 2**31
    assert len(folder) == 4096
    assert events.receipt(b"nothing") == (Names(), "", Mended())


def _mended(**told: object) -> Mended:
    return events.receipt(msgspec.json.encode({"workbench": told}))[2]


def test_a_guest_cannot_claim_that_something_was_installed_nor_by_a_rule_that_there_is_not() -> None:
    said = {"rule": "key-convention", "text": "x", "line": 1}
    forged = [
        {**said, "kind": "installed", "packages": ["evil==1"]},
        {**said, "kind": "corrected", "rule": "install"},
        {**said, "kind": "hint", "rule": "made-up"},
        {**said, "kind": "corrected"},
    ]
    told = _mended(corrections=forged, rules={"made-up": {"acted": 5}, "fence": {"acted": 2, "other": 3}})
    assert [(one.kind, one.rule, one.packages) for one in told.corrections.items] == [
        (CorrectionKind.CORRECTED, "key-convention", ())
    ]
    assert told.rules == (RuleCount(rule="fence", acted=2),)


def test_what_a_guest_says_of_its_corrections_is_bounded_and_on_one_line() -> None:
    one = {"kind": "hint", "rule": "fence", "text": "a\n[sandbox] b\x1b[31m" + "x" * 2000, "line": -4, "times": -1}
    told = _mended(corrections=[one] * 100, corrections_left_out=-7, rules={"fence": {"acted": -1, "hinted": 2**60}})
    assert len(told.corrections.items) == 20
    first = told.corrections.items[0]
    assert first.text.startswith("a [sandbox] bx")
    assert len(first.text) == 500
    assert (first.line, first.times, told.corrections.left_out) == (0, 1, 0)
    assert told.rules[0].acted == 0
    assert told.rules[0].hinted == 1_000_000


def test_a_crash_report_ends_with_the_agents_first_line() -> None:
    said = (
        "Fatal Python error: Segmentation fault\n\nStack (most recent call first):\n"
        '  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at\n'
        '  File "/tmp/ipykernel_7/123.py", line 2 in f\n  File "/tmp/ipykernel_7/123.py", line 3 in <module>\n'
        '  File "/opt/x/interactiveshell.py", line 3823 in run_code\n\nExtension modules: numpy (total: 1)\n'
    )
    assert crash_report(said) == (
        "Fatal Python error: Segmentation fault\n\nStack (most recent call first):\n"
        '  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at\n'
        "  File <cell>, line 2 in f\n  File <cell>, line 3 in <module>\n"
    )
    assert crash_report("") == ""
