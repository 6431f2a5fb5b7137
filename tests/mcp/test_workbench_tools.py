"""COMPOSIO_REMOTE_WORKBENCH and COMPOSIO_REMOTE_BASH_TOOL, as a client of the official library has them."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from tests.mcp.conftest import Connect

from workbench.cli.asking import OWNER
from workbench.core import requests
from workbench.mcp.alone import Alone
from workbench.mcp.families import Family
from workbench.mcp.tools import ALL_TOOLS
from workbench.mcp.visit import Visit
from workbench.model.ids import SessionId
from workbench.settings import Settings
from workbench.wiring import open_service

CODE, BASH = "COMPOSIO_REMOTE_WORKBENCH", "COMPOSIO_REMOTE_BASH_TOOL"

# What users of these tools know, as data: name → type, with * for what is required.
INPUTS = {
    CODE: {
        "code_to_execute": "string*",
        "thought": "string",
        "session_id": "string",
        "current_step": "string",
        "current_step_metric": "string",
    },
    BASH: {"command": "string*", "session_id": "string"},
}
WRAPPER = {"data": "object*", "error": "string|null", "successful": "boolean*"}
DATA = {
    CODE: {
        "results": "string*",
        "stdout": "string*",
        "stderr": "string*",
        "error": "string",
        "results_file_path": "string",
        "stdout_file_path": "string",
        "stderr_file_path": "string",
        "session": "object",
        "sandbox_id_suffix": "string",
    },
    BASH: {
        "stdout": "string*",
        "stdoutLines": "integer*",
        "stderr": "string*",
        "stderrLines": "integer*",
        "stdout_file_path": "string",
        "stderr_file_path": "string",
        "session": "object",
        "sandbox_id_suffix": "string",
    },
}
SESSION = {"id": "string*", "instructions": "string*"}


def table(schema: dict[str, Any]) -> dict[str, str]:
    """The properties of an object, as above."""
    required = schema.get("required", [])
    rows = {}
    for name, one in schema["properties"].items():
        kinds = one["type"] if isinstance(one["type"], list) else [one["type"]]
        rows[name] = "|".join(kinds) + ("*" if name in required else "")
    return rows


async def run(client: Client, code: str, **more: Any) -> types.CallToolResult:
    answer = await client.call_tool(CODE, {"code_to_execute": code, **more})
    assert isinstance(answer, types.CallToolResult)
    return answer


def said(answer: types.CallToolResult) -> dict[str, Any]:
    found: dict[str, Any] | None = answer.structured_content
    assert found is not None
    return found


async def data(client: Client, code: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = said(await run(client, code, **more))["data"]
    return found


async def bash(client: Client, command: str, **more: Any) -> dict[str, Any]:
    return said(await client.call_tool(BASH, {"command": command, **more}))


async def delete(settings: Settings, session: str) -> None:
    async with open_service(settings, os.environ) as service:
        await service.workbench().delete_session(requests.DeleteSession(session=SessionId(session)))


async def test_both_have_the_inputs_outputs_and_hints_that_their_users_know(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        tools = {one.name: one for one in (await client.list_tools()).tools}
    assert list(tools) == [CODE, BASH]
    for name, tool in tools.items():
        assert table(tool.input_schema) == INPUTS[name]
        assert tool.input_schema["additionalProperties"] is False
        assert all(one["description"] for one in tool.input_schema["properties"].values())
        output = tool.output_schema
        assert output is not None
        assert table(output) == WRAPPER
        assert table(output["properties"]["data"]) == DATA[name]
        assert output["properties"]["data"]["additionalProperties"] is False
        assert table(output["properties"]["data"]["properties"]["session"]) == SESSION
        assert tool.annotations is not None
        assert (tool.annotations.destructive_hint, tool.annotations.open_world_hint) == (True, True)
        assert tool.annotations.read_only_hint is False


async def test_variables_live_on_from_call_to_call(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        await run(client, "kept = 41")
        answer = said(await run(client, "kept + 1"))
        assert answer["data"]["results"] == "42"
        assert (answer["successful"], answer["error"], answer["data"]["error"]) == (True, None, "")
        assert "next" not in answer


async def test_the_text_repeats_the_structure_as_json_and_pictures_are_images_only(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        answer = await run(
            client,
            "import io, base64\nfrom IPython.display import Image, display\nfrom PIL import Image as Pixels\n"
            "def shown(kind):\n    made = io.BytesIO()\n    Pixels.new('RGB', (8, 8), 'red').save(made, kind)\n"
            "    display(Image(made.getvalue(), format=kind))\nshown('png'); shown('jpeg')",
        )
        text, *pictures = answer.content
        assert isinstance(text, types.TextContent)
        assert json.loads(text.text) == answer.structured_content
        assert [one.mime_type for one in pictures if isinstance(one, types.ImageContent)] == ["image/png", "image/jpeg"]
        assert all(one.data not in text.text for one in pictures if isinstance(one, types.ImageContent))


async def test_what_is_displayed_and_the_last_value_are_the_results(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        found = await data(client, "display('first')\nprint('printed')\n'last'")
        assert (found["results"], found["stdout"]) == ("'first'\n'last'", "printed\n")
        plot = await run(client, "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()")
        assert "Figure" in said(plot)["data"]["results"]
        assert any(isinstance(one, types.ImageContent) for one in plot.content)


async def test_stderr_is_kept_apart_and_our_words_are_in_neither_stream(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        found = await data(client, "import sys; print('out'); print('err', file=sys.stderr); 1 / 0")
        assert (found["stdout"], found["stderr"]) == ("out\n", "err\n")
        assert found["error"].endswith("ZeroDivisionError: division by zero")


async def test_code_that_raises_is_a_result_and_no_protocol_error(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        answer = await run(client, "{}['missing']")
        assert answer.is_error is False
        assert said(answer)["successful"] is False
        assert said(answer)["error"] == "the code raised KeyError: 'missing'"
        assert said(answer)["next"]["arguments"]["session_id"] == said(answer)["data"]["session"]["id"]


@pytest.mark.parametrize("stream", ["stdout", "stderr", "results"])
async def test_a_long_text_is_cut_and_the_whole_is_in_a_file_of_the_sandbox(connect: Connect, stream: str) -> None:
    code = {
        "stdout": "for n in range(20_000): print('line', n)",
        "stderr": "import sys\nfor n in range(20_000): print('line', n, file=sys.stderr)",
        "results": "class Long:\n    def __repr__(self): return '\\n'.join(f'line {n}' for n in range(20_000))\nLong()",
    }[stream]
    async with connect(Family.WORKBENCH) as client:
        found = await data(client, code)
        assert len(found[stream]) <= 40_000
        assert "left out" in found[stream]
        assert {name for name in found if name.endswith("_file_path")} == {f"{stream}_file_path"}
        read = await data(
            client, f"whole = open({found[f'{stream}_file_path']!r}).read().split(); len(whole), whole[-1]"
        )
        assert read["results"] == "(40000, '19999')"


async def test_lines_of_a_command_are_those_of_the_whole(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        found = (await bash(client, "seq 20000; echo oops >&2; printf 'no end' >&2"))["data"]
        assert (found["stdoutLines"], found["stderrLines"], found["stderr"]) == (20_000, 2, "oops\nno end")
        assert "left out" in found["stdout"]
        whole = await bash(client, f"wc -l < {found['stdout_file_path']}")
        assert whole["data"]["stdout"].strip() == "20000"


async def test_a_command_has_the_files_of_the_kernel_and_tells_its_exit_code(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        written = await data(client, "open('note.txt', 'w').write('from python')")
        answer = await bash(client, "pwd; cat note.txt; exit 3")
        assert answer["data"]["stdout"] == "/home/user\nfrom python"
        assert (answer["successful"], answer["error"]) == (False, "the command exited with 3")
        assert answer["data"]["sandbox_id_suffix"] == written["sandbox_id_suffix"]
        assert len(written["sandbox_id_suffix"]) == 4


async def test_the_session_is_told_by_its_id_and_its_instructions_are_short(connect: Connect) -> None:
    async with connect(Family.WORKBENCH, default_session="mcp-5f3a9c1e0b7d") as client:
        first = await data(client, "a = 1; b = 2")
        assert first["session"]["id"] == "mcp-5f3a9c1e0b7d"
        assert "This session is new" in first["session"]["instructions"]
        words = (await data(client, "c = 3", session_id=first["session"]["id"]))["session"]["instructions"]
        assert words == "Pass session_id='mcp-5f3a9c1e0b7d' to go on in this state. Memory 1, 2 cells, intact. New: c."


async def test_the_receipt_is_whole_in_meta(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        await run(client, "old = 1; gone = 1")
        answer = await run(client, "old = 2; new = 3; del gone")
        assert answer.meta is not None
        meta = json.loads(json.dumps(dict(answer.meta)))
        receipt = meta["open-workbench/receipt"]
        assert (receipt["added"], receipt["rebound"], receipt["removed"]) == (["new"], ["old"], ["gone"])
        assert (receipt["epoch"], receipt["state"], receipt["working_folder"]) == (1, "intact", "/home/user")
        outcome = meta["open-workbench/outcome"]
        assert (outcome["outcome"], outcome["limits"]) == ("ok", [])
        assert outcome["cell"].startswith("c-")


async def test_a_crash_says_that_the_memory_was_restored(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        await run(client, "kept = 1")
        answer = await run(client, "print('before', flush=True); import os; os._exit(3)")
        found = said(answer)["data"]
        assert answer.is_error is False
        assert found["stdout"] == "before\n"
        assert "code 3" in found["error"]
        assert "RESTORED" in found["session"]["instructions"]
        assert said(answer)["error"].startswith("lost: ")
        assert len(said(answer)["error"]) < len(found["error"])
        assert (await data(client, "kept"))["results"] == "1"


async def test_a_memory_that_is_lost_between_two_calls_is_told_with_its_reason(
    connect: Connect, settings: Settings
) -> None:
    name = f"mcp-{secrets.token_hex(4)}"
    async with connect(Family.WORKBENCH, default_session=name) as client:
        await run(client, "gone = 1")
        async with open_service(settings, os.environ) as service:
            await service.workbench().restart_kernel(requests.RestartKernel(session=SessionId(name)))
        answer = said(await run(client, "gone"))
        assert "NEW: earlier variables are lost (" in answer["data"]["session"]["instructions"]
        assert "NameError" in answer["error"]


async def test_missing_code_is_an_error_that_names_the_argument(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        for tool, missing in ((CODE, "code_to_execute"), (BASH, "command")):
            answer = await client.call_tool(tool, {})
            assert answer.is_error is True
            assert f"`{missing}` is missing" in said(answer)["error"]
            assert said(answer)["error"].startswith("not run: ")
            assert missing in said(answer)["next"]["arguments"]


async def test_an_unknown_word_is_told_with_what_is_alive_and_starts_nothing(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        alive = (await data(client, "1"))["session"]["id"]
        for tool, argument in ((CODE, "code_to_execute"), (BASH, "command")):
            answer = await client.call_tool(tool, {argument: "1", "session_id": "gate"})
            assert answer.is_error is True
            words = said(answer)["error"]
            assert "no session 'gate'" in words
            assert alive in words
            assert "`workbench" not in words
            assert "gate" not in words.split("Living sessions:")[1]


async def test_on_a_sessions_own_address_any_word_means_it_and_is_told_back(connect: Connect) -> None:
    name = f"own-{secrets.token_hex(4)}"
    async with connect(Family.WORKBENCH, default_session=name) as client:
        await run(client, "kept = 1")
    async with connect(Family.WORKBENCH, own_session=name) as client:
        found = await data(client, "kept", session_id="gate")
        assert (found["results"], found["session"]["id"]) == ("1", "gate")
        assert "session_id='gate'" in found["session"]["instructions"]
        assert (await data(client, "kept"))["session"]["id"] == name
        raised = said(await run(client, "1 / 0", session_id="gate"))
        assert raised["next"]["arguments"]["session_id"] == "gate"


async def test_an_address_whose_session_is_gone_runs_nothing_and_makes_none(
    connect: Connect, settings: Settings
) -> None:
    name = f"own-{secrets.token_hex(4)}"
    async with connect(Family.WORKBENCH, own_session=name) as client:
        answer = await run(client, "1")
        assert answer.is_error is True
        assert name in said(answer)["error"]
        assert said(answer)["error"].endswith("Living sessions: none")


async def test_two_first_calls_at_once_share_the_session_that_one_of_them_makes(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        answers = await asyncio.gather(*(run(client, f"n{n} = {n}") for n in range(4)))
        assert [said(one)["error"] for one in answers] == [None] * 4
        assert len({said(one)["data"]["sandbox_id_suffix"] for one in answers}) == 1
        assert sum("is new" in said(one)["data"]["session"]["instructions"] for one in answers) == 1
        assert (await data(client, "n0, n1, n2, n3"))["results"] == "(0, 1, 2, 3)"


async def test_a_default_session_that_was_deleted_is_made_anew_unnamed_and_refused_by_its_name(
    connect: Connect, settings: Settings
) -> None:
    async with connect(Family.WORKBENCH) as client:
        name = (await data(client, "gone = 1"))["session"]["id"]
        await delete(settings, name)
        refused = await run(client, "gone", session_id=name)
        assert refused.is_error is True
        found = await data(client, "'gone' in dir()")
        assert found["results"] == "False"
        assert "This session is new" in found["session"]["instructions"]


async def test_calls_while_the_default_session_is_being_deleted_never_stay_in_it(
    connect: Connect, settings: Settings
) -> None:
    async with connect(Family.WORKBENCH) as client:
        name = (await data(client, "gone = 1"))["session"]["id"]
        deleting = asyncio.create_task(delete(settings, name))
        answers = [said(await run(client, "'ran'")) for _ in range(3)]
        await deleting
        assert not any("being deleted" in str(one["error"]) for one in answers), [one["error"] for one in answers]
        assert (await data(client, "'ran'"))["results"] == "'ran'"


async def test_a_default_session_whose_files_went_to_a_branch_proposes_the_branch(
    connect: Connect, settings: Settings
) -> None:
    async with connect() as client:
        name = (await data(client, "kept = 1"))["session"]["id"]
        branch = said(await client.call_tool("branch_session", {}))["session_id"]
        await delete(settings, name)
        answer = said(await run(client, "kept"))
        assert branch in answer["error"]
        assert answer["next"]["arguments"]["session_id"] == branch
        again = said(await client.call_tool(answer["next"]["tool"], answer["next"]["arguments"]))
        assert again["data"]["results"] == "1"


async def test_thoughts_and_steps_are_kept_with_the_cell(connect: Connect, settings: Settings) -> None:
    async with connect(Family.WORKBENCH) as client:
        found = await data(client, "1", thought="why", current_step="COUNTING", current_step_metric="1/2 things")
        async with open_service(settings, os.environ) as service:
            ask = requests.DescribeSession(session=SessionId(found["session"]["id"]))
            progress = (await service.workbench().describe_session(ask)).progress
        assert (progress.thought, progress.current_step, progress.current_step_metric) == (
            "why",
            "COUNTING",
            "1/2 things",
        )


async def test_null_for_what_is_optional_is_as_if_it_was_not_there(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        answer = await run(client, "1 + 1", thought=None, session_id=None, timeout=None)
        assert said(answer)["data"]["results"] == "2"
        assert "timeout" not in said(answer)["data"]["session"]["instructions"]
        assert "`code_to_execute`" in said(await client.call_tool(CODE, {"code_to_execute": None}))["error"]


async def test_an_older_clients_timeout_is_taken_and_not_used(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        found = await data(client, "1 + 1", timeout=600)
        assert found["results"] == "2"
        assert "`timeout` is not used: a cell has 180 s." in found["session"]["instructions"]


async def test_an_svg_is_told_by_its_source_as_no_client_shows_it(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        found = await data(client, "display({'image/svg+xml': '<svg>drawn</svg>'}, raw=True)\n'last'")
        assert found["results"] == "<svg>drawn</svg>\n'last'"
        shown = "from IPython.display import SVG\nSVG('<svg xmlns=\"http://www.w3.org/2000/svg\"><!--%s--></svg>')"
        last = (await data(client, shown % ("x" * 9000)))["results"]
        assert last.startswith("<svg")
        assert "left out" in last
        assert len(last) < 3000


async def test_what_is_no_picture_is_not_shown_as_one(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        answer = await run(client, "display({'image/png': 'PHNjcmlwdD4=', 'text/plain': 'p'}, raw=True)")
        assert [one.type for one in answer.content] == ["text"]
        assert "What was displayed as image/png is none." in said(answer)["data"]["session"]["instructions"]


async def test_a_session_that_is_deleted_under_a_cell_is_not_said_to_be_there(
    connect: Connect, settings: Settings
) -> None:
    for runs in (lambda client, name: run(client, _BEGINS, session_id=name), _bash_begins):
        async with connect(Family.WORKBENCH) as client:
            name = (await data(client, "kept = 1"))["session"]["id"]
            call = asyncio.create_task(runs(client, name))
            async with asyncio.timeout(30):
                while not (await bash(client, "cat /tmp/began"))["successful"]:
                    await asyncio.sleep(0.05)
            await delete(settings, name)
            answer = await call
            assert answer.is_error is False
            everything = str(said(answer))
            assert "the session was deleted while this ran" in everything
            assert "/mnt/files is kept" not in everything
            assert "to go on in this state" not in everything
            step = said(answer)["next"]
            assert said(await client.call_tool(step["tool"], step["arguments"]))["successful"] is True


_BEGINS = "open('/tmp/began', 'w').close()\nimport time\ntime.sleep(100)"


async def _bash_begins(client: Client, name: str) -> types.CallToolResult:
    return await client.call_tool(BASH, {"command": "touch /tmp/began; sleep 100", "session_id": name})


async def test_a_server_that_stops_does_not_say_that_what_runs_did_not(settings: Settings) -> None:
    async with open_service(settings, os.environ) as service:
        around = Alone(service.access, OWNER)
        visit = Visit(bench=service.workbench(), around=around, default_session=SessionId(f"m-{secrets.token_hex(4)}"))
        tool = next(one for one in ALL_TOOLS if one.name == CODE)
        await tool.answer(visit, {"code_to_execute": "1"})
        call = asyncio.create_task(tool.answer(visit, {"code_to_execute": "import time; time.sleep(2)\nkept = 7"}))
        await asyncio.sleep(0.5)
        around.stopping.set()
        answer = (await call).result(1 << 20)
        assert answer.is_error is False
        assert said(answer)["successful"] is False
        for wrong in ("not run", "Nothing ran"):
            assert wrong not in str(said(answer))
        assert "It goes on in the session" in said(answer)["error"]
        assert answer.meta is not None
        assert answer.meta["open-workbench/outcome"]["cell"].startswith("c-")
        around.stopping.clear()
        looked = (await tool.answer(visit, said(answer)["next"]["arguments"])).structured
        assert "kept" in looked["data"]["stdout"]
        await around.aclose()


async def test_a_defect_of_ours_does_not_say_that_nothing_ran(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(*_: object, **__: object) -> str:
        raise ValueError("a defect, after it ran")

    async with connect(Family.WORKBENCH) as client:
        await run(client, "1")
        monkeypatch.setattr("workbench.mcp.receipts.in_words", defect)
        answer = await run(client, "ran = 7")
        monkeypatch.undo()
        assert answer.is_error is True
        assert "Whether this ran is unknown: look first" in said(answer)["error"]
        assert "not run" not in said(answer)["error"]
        step = said(answer)["next"]
        assert "ran" in said(await client.call_tool(step["tool"], step["arguments"]))["data"]["stdout"]
