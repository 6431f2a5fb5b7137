"""Lines that programs read, without what exceptions quote."""

from __future__ import annotations

import json
import logging
import sys

from workbench.server.logs import JsonHandler, Log


def test_an_event_is_one_line_of_json_without_empty_fields() -> None:
    lines: list[str] = []
    Log("info", lines.append).event("info", "request", status=200, session="", key=None, ms=1.5)
    told = json.loads(lines[0])
    assert lines[0].endswith("\n")
    assert {name: told[name] for name in ("level", "event", "status", "ms")} == {
        "level": "info", "event": "request", "status": 200, "ms": 1.5,
    }  # fmt: skip
    assert not {"session", "key"} & set(told)


def test_events_below_the_level_are_left_out() -> None:
    lines: list[str] = []
    log = Log("warning", lines.append)
    log.event("info", "request")
    log.event("warning", "request")
    assert len(lines) == 1


def test_a_librarys_exception_is_told_by_kind_and_place() -> None:
    lines: list[str] = []
    handler = JsonHandler(Log("debug", lines.append))
    try:
        raise FileNotFoundError(2, "No such file or directory", "/secret/place")
    except FileNotFoundError:
        handler.emit(logging.makeLogRecord({"levelname": "ERROR", "msg": "it failed", "exc_info": sys.exc_info()}))
    handler.emit(logging.makeLogRecord({"levelname": "WARNING", "msg": "something %s", "args": ("odd",)}))
    broken, odd = (json.loads(line) for line in lines)
    assert broken["problem"] == "FileNotFoundError No such file or directory"
    assert "test_logs.py" in broken["where"]
    assert "/secret/place" not in lines[0]
    assert (odd["level"], odd["said"]) == ("warning", "something odd")
