"""Every input and every output that the page of COMPOSIO_REMOTE_WORKBENCH has a row for, by `session.execute`."""

from __future__ import annotations

from typing import Any

import pytest

from workbench import ComposioSession
from workbench.client.composio.values import ExecuteResponse
from workbench.errors import InvalidRequest

SLUG = "COMPOSIO_REMOTE_WORKBENCH"
# Name, and whether it must be given.
INPUTS = {
    "code_to_execute": True,
    "thought": False,
    "session_id": False,
    "current_step": False,
    "current_step_metric": False,
}
# Name, and whether it is always there.
OUTPUTS = {
    "error": False,
    "results": True,
    "results_file_path": False,
    "session": False,
    "stderr": True,
    "stderr_file_path": False,
    "stdout": True,
    "stdout_file_path": False,
    "sandbox_id_suffix": False,
}
HELPERS = [
    "run_composio_tool",
    "invoke_llm",
    "upload_local_file",
    "proxy_execute",
    "web_search",
    "smart_file_extract",
]


def run(session: ComposioSession, code: str, **more: str) -> ExecuteResponse:
    answer = session.execute(SLUG, {"code_to_execute": code, **more})
    needed = {name for name, always in OUTPUTS.items() if always}
    assert needed <= answer.data.keys() <= OUTPUTS.keys(), answer.data.keys()
    for name in needed:
        assert isinstance(answer.data[name], str)
    return answer


def test_the_tool_is_listed_with_its_inputs_and_its_tags(session: ComposioSession) -> None:
    (tool,) = [one for one in session.raw_tools() if one.slug == SLUG]
    assert {"destructiveHint", "openWorldHint"} <= set(tool.tags)
    schema = tool.input_parameters
    assert {name: name in schema["required"] for name in schema["properties"]} == INPUTS
    assert {one["type"] for one in schema["properties"].values()} == {"string"}
    data = tool.output_parameters["properties"]["data"]
    assert {name: name in data["required"] for name in data["properties"]} == OUTPUTS


def test_state_is_preserved_across_executions(session: ComposioSession) -> None:
    run(session, "import math\nx = 6\nopen('here.txt', 'w').write('files too')")
    answer = run(session, "print(open('here.txt').read())\nmath.floor(x * 7.0)")
    assert answer.successful
    assert answer.error is None
    assert answer.data["stdout"] == "files too\n"
    assert "42" in answer.data["results"]
    assert answer.data["stderr"] == ""
    assert not answer.data.get("error")


def test_every_input_is_taken(session: ComposioSession) -> None:
    answer = run(
        session,
        "print('working')",
        thought="Count the mails, as there are too many for single calls.",
        session_id="gate",
        current_step="FETCHING_EMAILS",
        current_step_metric="10/100 emails",
    )
    assert answer.data["stdout"] == "working\n"
    told: dict[str, Any] = answer.data["session"]
    assert set(told) >= {"id", "instructions"}
    assert all(isinstance(one, str) and one for one in told.values())


def test_code_that_is_missing_is_named(session: ComposioSession) -> None:
    with pytest.raises(InvalidRequest, match="`code_to_execute` is missing"):
        session.execute(SLUG, {"thought": "no code"})


def test_what_went_wrong_is_in_the_data_with_what_was_printed_before(session: ComposioSession) -> None:
    answer = run(session, "import sys\nprint('out')\nprint('err', file=sys.stderr)\n{}['missing']")
    assert (answer.successful, answer.error) == (False, "the code raised KeyError: 'missing'")
    assert "KeyError" in answer.data["error"]
    assert answer.data["stdout"] == "out\n"
    assert "err\n" in answer.data["stderr"]


@pytest.mark.parametrize(
    ("code", "stream"),
    [
        ("print('x' * 100_000)", "stdout"),
        ("import sys; print('x' * 100_000, file=sys.stderr)", "stderr"),
        ("'x' * 100_000", "results"),
    ],
)
def test_output_that_was_truncated_is_whole_in_a_file(session: ComposioSession, code: str, stream: str) -> None:
    answer = run(session, code)
    assert 0 < len(answer.data[stream]) < 60_000
    path = answer.data[f"{stream}_file_path"]
    assert path.startswith("/mnt/files/")
    whole = session.experimental.files.download(path.removeprefix("/mnt/files/")).text()
    assert whole.count("x") == 100_000


def test_the_end_of_the_sandboxs_id_is_told_and_stays(session: ComposioSession) -> None:
    first, second = (run(session, "1").data["sandbox_id_suffix"] for _ in range(2))
    assert first == second
    assert len(first) == 4


@pytest.mark.parametrize("helper", HELPERS)
def test_every_helper_is_there_without_any_set_up(session: ComposioSession, helper: str) -> None:
    assert "True" in run(session, f"callable({helper})").data["results"]


def test_a_model_and_a_search_answer_code_in_the_sandbox(session: ComposioSession) -> None:
    answer = run(session, "text, error = invoke_llm('say:one two three')\nprint(text, repr(error))")
    assert answer.data["stdout"] == "one two three ''\n"
    answer = run(session, "text, error = web_search('open workbench')\nprint(len(text) > 0, repr(error))")
    assert answer.data["stdout"] == "True ''\n"
