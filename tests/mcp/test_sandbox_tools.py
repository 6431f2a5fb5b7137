"""create_session, execute_code, execute_terminal and stop_session, as a client of the official library has them."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
import pytest
from jsonschema import validate
from mcp.client import Client
from tests.mcp.conftest import Connect
from tests.unit.core.standins import World

from workbench.errors import InternalError, ServerUnavailable
from workbench.mcp.answers import OUTCOME_KEY
from workbench.mcp.families import Family
from workbench.mcp.tools.sandbox import CODE
from workbench.mcp.tools.sandbox_answers import refused
from workbench.mcp.visit import Visit
from workbench.model.ids import SessionId

_FIGURE = """
import matplotlib.pyplot as plt
plt.plot([1, 2])
plt.show()
"""


async def answer(client: Client, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What it says, which its schema allows."""
    return (await called(client, tool, arguments)).structured_content or {}


async def called(client: Client, tool: str, arguments: dict[str, Any]) -> types.CallToolResult:
    """The whole message; a failure has a step that can be taken as it is."""
    result = await client.call_tool(tool, arguments)
    listed = {one.name: one for one in (await client.list_tools()).tools}
    said = result.structured_content or {}
    validate(said, listed[tool].output_schema or {})
    assert ("next" in said) is (not said["success"])
    if "next" in said:
        validate(said["next"]["arguments"], listed[said["next"]["tool"]].input_schema)
    return result


async def made(client: Client) -> str:
    """A session."""
    session: str = (await answer(client, "create_session", {}))["session_id"]
    return session


async def test_a_session_is_made_used_and_stopped(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        created = await answer(client, "create_session", {"language": "python", "dependencies": {"numpy": ""}})
        session = created.pop("session_id")
        assert created.pop("dependencies")["numpy"]
        assert created == {"success": True, "runtime": "python", "status": "idle"}
        await answer(client, "execute_code", {"session_id": session, "code": "kept = 41"})
        ran = await answer(client, "execute_code", {"session_id": session, "code": "print('hi')\nkept + 1"})
        assert ran == {
            "success": True,
            "stdout": "hi\n",
            "stderr": "",
            "result": "42",
            "error": None,
            "display_outputs": [],
        }
        said = await answer(client, "execute_terminal", {"session_id": session, "command": "pwd; echo oh >&2"})
        assert said == {"success": True, "stdout": "/home/user\n", "stderr": "oh\n", "exit_code": 0}
        assert await answer(client, "stop_session", {"session_id": session}) == {"success": True}
        gone = await called(client, "execute_code", {"session_id": session, "code": "kept"})
        assert gone.is_error
        assert session not in (gone.structured_content or {})["sessions"]


async def test_top_level_await_and_a_coroutine_as_last_expression_give_their_value(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        code = "import asyncio\nasync def seven(): return 7\nawait seven()"
        assert (await answer(client, "execute_code", {"session_id": session, "code": code}))["result"] == "7"


@pytest.mark.parametrize("name", ["nobody", "Not A Name", "x" * 100])
async def test_a_wrong_session_answers_with_those_that_live_and_a_way_on(connect: Connect, name: str) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        for tool, more in (
            ("execute_code", {"code": "1"}),
            ("execute_terminal", {"command": "true"}),
            ("import_files", {"files": [{"file_name": "a", "file_content": "b"}]}),
            ("export_files", {"files": [{"source": "a"}]}),
            ("stop_session", {}),
        ):
            result = await called(client, tool, {"session_id": name, **more})
            said = result.structured_content or {}
            assert result.is_error, tool
            assert said["success"] is False
            assert "no session" in said["error"]
            assert session in said["sessions"]
            assert "create_session" in said["hint"]
            assert said["next"] == {"tool": "create_session", "arguments": {}}
        await answer(client, "stop_session", {"session_id": session})


async def test_a_missing_session_id_is_told_and_the_next_step_can_be_taken(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        said = await answer(client, "execute_code", {"code": "1"})
        assert "`session_id` is missing" in said["error"]
        assert said["next"] == {"tool": "create_session", "arguments": {}}


async def test_a_timeout_over_300_seconds_is_an_error_that_says_so(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        asked = {"session_id": session, "code": "1 + 1", "timeout": 301}
        said = await answer(client, "execute_code", asked)
        assert "at most 300 seconds, not 301" in said["error"]
        assert said["next"] == {"tool": "execute_code", "arguments": {**asked, "timeout": 300}}
        assert (await answer(client, **_step(said)))["result"] == "2"


def _step(said: dict[str, Any]) -> dict[str, Any]:
    return {"tool": said["next"]["tool"], "arguments": said["next"]["arguments"]}


async def test_code_that_raises_keeps_what_it_printed_and_is_a_result(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        result = await called(client, "execute_code", {"session_id": session, "code": "print('before')\n1/0"})
        said = result.structured_content or {}
        assert not result.is_error
        assert said["stdout"] == "before\n"
        assert "ZeroDivisionError" in said["error"]
        assert said["next"]["tool"] == "execute_code"


async def test_code_past_its_timeout_is_interrupted_and_variables_stay(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        code = "kept = 1\nimport time\ntime.sleep(60)"
        said = await answer(client, "execute_code", {"session_id": session, "code": code, "timeout": 0.5})
        assert said["error"].startswith("TIMED_OUT: ")
        assert (await answer(client, "execute_code", {"session_id": session, "code": "kept"}))["result"] == "1"


async def test_long_output_is_cut_in_the_middle_and_says_how_much_is_left_out(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        code = "import sys\nprint('z' * 99_999)\nsys.stderr.write('b' * 30_000)\n'c' * 30_000"
        said = await answer(client, "execute_code", {"session_id": session, "code": code})
        assert len(said["stdout"]) <= 20_000
        left_out = 99_999 - said["stdout"].count("z")
        assert f"{left_out:,} characters with 0 line ends are left out" in said["stdout"]
        assert "/mnt/files/outputs/" in said["hint"]
        assert len(said["stderr"]) <= 10_000
        assert "The middle of stderr is left out" in said["hint"]
        assert len(said["result"]) <= 20_000
        assert "The middle of result is left out" in said["hint"]
        said = await answer(client, "execute_code", {"session_id": session, "code": "'e' * 99_999"})
        assert "All of result is in /mnt/files/outputs/" in said["hint"]
        said = await answer(client, "execute_code", {"session_id": session, "code": "raise ValueError('d' * 9_000)"})
        assert len(said["error"]) <= 5_000


async def test_a_picture_is_image_content_and_base64_only_in_the_structure(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        result = await called(client, "execute_code", {"session_id": session, "code": _FIGURE, "timeout": 120})
        said = result.structured_content or {}
        picture = "".join(said["display_outputs"][0]["image/png"].split())
        images = [one for one in result.content if isinstance(one, types.ImageContent)]
        assert [one.data for one in images] == [picture]
        text = result.content[0]
        assert isinstance(text, types.TextContent)
        assert picture[:100] not in text.text
        assert "shown as an image" in json.loads(text.text)["display_outputs"][0]["image/png"]


_BLOB = """
import base64, os
from IPython.display import display
png = base64.b64encode(b"\\x89PNG\\r\\n\\x1a\\n" + os.urandom(200_000)).decode()
display({"image/png": png}, raw=True)
display({"image/svg+xml": "<svg/>", "text/plain": "drawn"}, raw=True)
display({"text/html": "<b>" + "h" * 30_000, "text/plain": "p" * 30_000}, raw=True)
display({"text/html": "<b>only</b>", "application/json": {"many": "j" * 30_000}}, raw=True)
"""


async def test_what_is_displayed_is_small_in_the_structure_and_smaller_in_the_text(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        result = await called(client, "execute_code", {"session_id": session, "code": _BLOB})
        png, svg, table, data = (result.structured_content or {})["display_outputs"]
        assert png == {"image/png": "[200,008 bytes, shown as an image]"}
        assert svg["image/svg+xml"].endswith("not shown]")
        assert [len(one) <= 20_000 for one in (*table.values(), *data.values())] == [True] * 4
        assert [one.type for one in result.content] == ["text", "image", "resource"]
        text, _, drawing = result.content
        assert isinstance(text, types.TextContent)
        assert isinstance(drawing, types.EmbeddedResource)
        assert (drawing.resource.mime_type, getattr(drawing.resource, "text", "")) == ("image/svg+xml", "<svg/>")
        png, svg, table, data = json.loads(text.text)["display_outputs"]
        assert png == {"image/png": "[200,008 bytes, shown as an image]"}
        assert svg == {"image/svg+xml": "[6 characters, not shown]", "text/plain": "drawn"}
        assert set(table) == {"text/plain"}
        assert data["text/html"] == "<b>only</b>"
        assert data["application/json"].endswith(" characters, not shown]")
        small = await called(
            client, "execute_code", {"session_id": session, "code": "display({'image/svg+xml': '<svg/>'}, raw=True)"}
        )
        assert (small.structured_content or {})["display_outputs"] == [{"image/svg+xml": "<svg/>"}]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os.kill(os.getpid(), 11)", "CONTAINER_DIED: segfault: "),
        ("import os; os.kill(os.getpid(), 9)", "CONTAINER_DIED: killed by signal 9: "),
        ("held = []\nwhile True: held.append(b'x' * 2**26)", "CONTAINER_DIED: out of memory: "),
        ("import os; os._exit(3)", "CONTAINER_DIED: os._exit or a library ended the kernel's process with code 3"),
    ],
)
async def test_a_kernel_that_died_says_why_and_what_became_of_the_memory(
    connect: Connect, code: str, reason: str
) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        await answer(client, "execute_code", {"session_id": session, "code": "kept = 1"})
        said = await answer(client, "execute_code", {"session_id": session, "code": code})
        assert said["error"].startswith(reason)
        assert "restored from a snapshot" in said["error"]
        assert "Variables are as they were before this cell" in said["hint"]
        assert (await answer(client, "execute_code", {"session_id": session, "code": "kept"}))["result"] == "1"
        await answer(client, "stop_session", {"session_id": session})


async def test_a_command_that_fails_has_its_exit_code_and_is_a_result(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        result = await called(client, "execute_terminal", {"session_id": session, "command": "echo a; exit 3"})
        said = result.structured_content or {}
        assert not result.is_error
        assert (said["success"], said["exit_code"], said["stdout"]) == (False, 3, "a\n")


async def test_a_language_that_is_not_here_is_refused_with_those_that_are(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        said = await answer(client, "create_session", {"language": "julia"})
        assert not said["success"]
        assert "node, python, r. No session was made" in said["error"]
        assert (await answer(client, **_step(said)))["runtime"] == "python"


async def test_a_session_of_another_language_says_so_and_what_it_cannot(connect: Connect) -> None:
    async with connect(Family.SANDBOX, Family.WORKBENCH, Family.KERNEL) as client:
        made = await answer(client, "create_session", {"language": "JavaScript"})
        assert (made["success"], made["runtime"]) == (True, "node")
        assert "no undo, no branches" in made["hint"]
        session = {"session_id": made["session_id"]}
        assert "Node.js" in (await answer(client, "undo_cells", session))["error"]
        python = await client.call_tool("COMPOSIO_REMOTE_WORKBENCH", {**session, "code_to_execute": "1"})
        said = python.structured_content or {}
        assert (python.is_error, said["successful"]) == (True, False)
        assert said["error"].startswith("not run: ")
        assert "runs Python: run code of it with execute_code" in said["error"]
        step = await client.call_tool(said["next"]["tool"], said["next"]["arguments"])
        assert (step.structured_content or {})["successful"]


async def test_on_a_sessions_own_address_its_language_stays(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = (await answer(client, "create_session", {"language": "node"}))["session_id"]
    async with connect(Family.SANDBOX, own_session=session) as client:
        assert (await answer(client, "create_session", {}))["runtime"] == "node"
        assert (await answer(client, "create_session", {"language": "JS"}))["runtime"] == "node"
        said = await answer(client, "create_session", {"language": "python"})
        assert "keeps its language: leave `language` out" in said["error"]
        assert (await answer(client, **_step(said)))["session_id"] == session


async def test_dependencies_of_another_language_go_to_its_installer(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        wanted = {"lodash": "^4.17.0", "no-such-package-here": ""}
        said = await answer(client, "create_session", {"language": "node", "dependencies": wanted})
        assert (said["success"], list(said["dependencies"])) == (True, ["lodash"])
        assert said["dependencies"]["lodash"].startswith("4.")
        installed, refused = said["stderr"].splitlines()
        assert installed.startswith("installed lodash==4.")
        assert "no-such-package-here" in refused


async def test_packages_that_cannot_be_had_are_told_in_stderr_and_the_others_are_there(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        wanted = {"numpy": "", "no-such-package-here": "", "pandas": "0.0.1", "tabulate": "", "humanize": ">=4,<5"}
        said = await answer(client, "create_session", {"dependencies": wanted})
        assert said["success"]
        assert set(said["dependencies"]) == {"numpy", "tabulate", "humanize"}
        refused, kept, *installed = said["stderr"].splitlines()
        assert "no-such-package-here" in refused
        assert "pandas" in kept
        assert [line.partition("==")[0] for line in installed] == ["installed tabulate", "installed humanize"]
        code = {"session_id": said["session_id"], "code": "import tabulate, humanize; print('both')"}
        assert (await answer(client, "execute_code", code))["stdout"] == "both\n"
        exact = {"numpy": f"=={said['dependencies']['numpy']}"}
        assert "stderr" not in await answer(client, "create_session", {"dependencies": exact})
        assert (
            "not the name of a package"
            in (await answer(client, "create_session", {"dependencies": {"; touch /tmp/x": ""}}))["error"]
        )


async def test_a_version_that_is_none_is_told_before_anything_is_made(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        said = await answer(client, "create_session", {"dependencies": {"numpy": "newest please"}})
        assert "not a version: 'newest please'" in said["error"]
        assert said["next"] == {"tool": "create_session", "arguments": {}}
        assert "can be called as `next` has it" in said["hint"]


async def test_the_hint_says_what_next_is(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        said = await answer(client, "execute_code", {"code": "1"})
        assert said["next"]["tool"] == "create_session"
        assert "create_session" in said["hint"]
        assert "execute_code can be called as" not in said["hint"]


async def test_what_goes_on_or_may_have_run_is_never_said_not_to_have_run(connect: Connect) -> None:
    unknown: Any = None
    visit = Visit(
        bench=World().bench(),
        around=unknown,
        default_session=SessionId("mcp-x"),
        families=frozenset({Family.SANDBOX}),
    )
    given = {"session_id": "s", "code": "1"}
    goes_on = await refused(visit, CODE, given, ServerUnavailable("the server stops", {"cell": "c-1"}))
    assert not goes_on.never_began
    assert goes_on.meta == {OUTCOME_KEY: {"cell": "c-1"}}
    unclear = await refused(visit, CODE, given, InternalError("a defect"))
    assert unclear.never_began
    for one in (goes_on, unclear):
        assert "Nothing ran" not in str(one.structured)
        assert one.next is not None
        assert one.next.arguments["code"] == "%whos"


async def test_on_a_sessions_own_address_there_is_that_session_and_no_other(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        mine, other = await made(client), await made(client)
        await answer(client, "execute_code", {"session_id": other, "code": "secret = 1"})
    async with connect(Family.SANDBOX, own_session=mine) as client:
        assert (await answer(client, "create_session", {}))["session_id"] == mine
        said = await answer(client, "execute_code", {"session_id": other, "code": "'secret' in globals()"})
        assert said["result"] == "False"
        for name in (mine, other):
            said = await answer(client, "stop_session", {"session_id": name})
            assert "needs a key" in said["error"]
        unmet = await answer(client, "create_session", {"dependencies": {"no-such-package-here": ""}})
        assert (unmet["session_id"], unmet["dependencies"]) == (mine, {})
    async with connect(Family.SANDBOX) as client:
        for name in (mine, other):
            assert (await answer(client, "stop_session", {"session_id": name}))["success"]


async def test_files_over_their_quota_interrupt_and_are_told_until_they_are_deleted(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        await answer(client, "execute_code", {"session_id": session, "code": "kept = 1"})
        fill = "fallocate -l 10500M /mnt/files/big; sleep 20"
        said = await answer(client, "execute_terminal", {"session_id": session, "command": fill})
        assert said["error"].startswith("INTERRUPTED: The command and everything in its process group were interrupted")
        assert "/mnt/files is over its quota: it holds 11,01" in said["error"]
        said = await answer(client, "execute_code", {"session_id": session, "code": "kept"})
        assert (said["success"], said["result"]) == (True, "1")
        assert "/mnt/files is over its quota: it holds 11,01" in said["hint"]
        said = await answer(client, "execute_terminal", {"session_id": session, "command": "rm /mnt/files/big"})
        assert (said["success"], "hint" in said) == (True, False)
        await answer(client, "stop_session", {"session_id": session})


async def test_a_sandbox_that_is_gone_is_told_with_the_memory_that_is_lost(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        await answer(client, "execute_code", {"session_id": session, "code": "kept = 1"})
        more = "fallocate -l 12G /mnt/files/big; sleep 2; fallocate -l 2G /mnt/files/more"
        fill = f"trap '' INT; {more}; sleep 60; rm -f /mnt/files/big /mnt/files/more"
        said = await answer(client, "execute_terminal", {"session_id": session, "command": fill})
        assert said["error"].startswith("CONTAINER_DIED: the sandbox ended: disk full")
        assert said["exit_code"] is None
        assert "/mnt/files is kept" in said["hint"]
        await answer(client, "stop_session", {"session_id": session})
