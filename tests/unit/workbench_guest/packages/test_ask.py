"""The question for packages as a program asks it: how it ends, and what is said meanwhile."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.unit.workbench_guest.packages.desk import answering

from workbench_guest.packages import ask


def test_an_install_that_takes_long_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    heard = threading.Event()

    def answer(_: dict[str, Any]) -> tuple[Any, str, str]:
        assert heard.wait(20)
        return {"text": "installed\nlodash"}, "", ""

    def say(text: str) -> None:
        said.append(text)
        heard.set()

    monkeypatch.setattr(ask, "PATIENCE_S", 0.01)
    monkeypatch.setattr(ask, "_say", say)
    with answering(answer) as desk:
        monkeypatch.setenv("WORKBENCH_CALLS", desk.address)
        assert ask.install("node", "modules", ["lodash"]) == ("ok", "installed lodash")
    assert said == ["[sandbox] installing lodash …"]


@pytest.mark.parametrize(
    ("code", "state"), [("package_refused", "refused"), ("rate_limited", "failed"), ("timed_out", "failed")]
)
def test_what_is_not_installed_comes_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: str, state: str
) -> None:
    with answering(lambda _: (None, "because", code)) as desk:
        monkeypatch.setenv("WORKBENCH_CALLS", desk.address)
        assert ask.main(["r", "requirements", "0", "dplyr"]) == 0
    assert capsys.readouterr().out == f"{state}\nbecause\n"


def test_where_nobody_is_there_is_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CALLS", "@nobody-is-here")
    assert ask.install("node", "modules", ["lodash"]) == ("failed", "")
