"""interrupt_session, restart_session, undo_cells, branch_session, create_context and
list_variables, through the official client."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

from mcp.client import Client
from tests.mcp.conftest import Connect

from workbench.mcp.families import Family

CODE = "COMPOSIO_REMOTE_WORKBENCH"


async def told(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What it answers, structured."""
    answer = await client.call_tool(tool, arguments)
    found: dict[str, Any] | None = answer.structured_content
    assert found is not None
    return found


async def ran(client: Client, code: str, **arguments: Any) -> dict[str, Any]:
    """The data of a cell."""
    data: dict[str, Any] = (await told(client, CODE, code_to_execute=code, **arguments))["data"]
    return data


async def until_busy(client: Client) -> None:
    """A cell runs in the default session."""
    async with asyncio.timeout(20):
        while True:
            answer = await told(client, "undo_cells", cells=10_000)
            if answer["next"]["tool"] == "interrupt_session":
                # It has its turn; what an interrupt is to meet begins a moment later.
                await asyncio.sleep(0.5)
                return
            await asyncio.sleep(0.05)


async def test_variables_are_rows_of_name_type_size_and_preview(connect: Connect) -> None:
    async with connect() as client:
        data = await ran(client, "numbers = [1, 2, 3]")
        answer = await told(client, "list_variables")
        assert answer["success"] is True
        assert answer["session_id"] == data["session"]["id"]
        row = next(one for one in answer["variables"] if one["name"] == "numbers")
        assert row == {"name": "numbers", "type": "list", "size": row["size"], "preview": "[1, 2, 3]"}
        assert answer["state"] == "idle"
        assert answer["has_more"] is False


async def test_more_variables_than_an_agent_should_read_are_cut_and_told(connect: Connect) -> None:
    async with connect() as client:
        await ran(client, "for n in range(150): globals()[f'name_{n}'] = n")
        answer = await told(client, "list_variables")
        assert len(answer["variables"]) == 100
        assert answer["has_more"] is True


async def test_looking_at_a_session_that_nobody_used_makes_none(connect: Connect) -> None:
    async with connect() as client:
        looked = await told(client, "list_variables")
        assert looked["success"] is True
        assert (looked["state"], looked["variables"]) == ("cold", [])
        stopped = await told(client, "interrupt_session")
        assert (stopped["success"], stopped["interrupted"]) == (True, False)
        unknown = await told(client, "list_variables", session_id="nobody-has-this")
        assert looked["session_id"] not in unknown["sessions"]


async def test_an_interrupt_ends_the_running_cell_and_keeps_its_variables(connect: Connect) -> None:
    async with connect() as client:
        await ran(client, "kept = 1")
        cell = asyncio.create_task(ran(client, "import time\nbegun = True\nwhile True: time.sleep(0.05)"))
        await until_busy(client)
        answer = await told(client, "interrupt_session")
        assert (answer["success"], answer["interrupted"], answer["state"]) == (True, True, "idle")
        assert "interrupted" in (await cell)["error"]
        assert (await ran(client, "kept, begun"))["results"] == "(1, True)"


async def test_an_interrupt_with_nothing_running_says_so_and_changes_nothing(connect: Connect) -> None:
    async with connect() as client:
        await ran(client, "kept = 1")
        answer = await client.call_tool("interrupt_session", {})
        assert answer.is_error is False
        assert answer.structured_content is not None
        assert answer.structured_content["interrupted"] is False
        assert answer.structured_content["note"] == "Nothing was running."
        assert "next" not in answer.structured_content


async def test_a_cell_that_ignores_interrupts_is_told_and_next_ends_it(connect: Connect) -> None:
    async with connect() as client:
        await ran(client, "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN)")
        stubborn = "while True:\n    try:\n        while True: time.sleep(0.05)\n    except BaseException: pass"
        cell = asyncio.create_task(told(client, CODE, code_to_execute=stubborn))
        await until_busy(client)
        answer = await told(client, "interrupt_session")
        assert (answer["success"], answer["state"]) == (False, "busy")
        ended = await told(client, answer["next"]["tool"], **answer["next"]["arguments"])
        assert ended["success"] is True
        assert ended["state"] == "idle"
        assert (await cell)["successful"] is False


async def test_a_restart_empties_the_memory_keeps_files_and_counts_the_epoch(connect: Connect) -> None:
    async with connect() as client:
        await ran(client, "gone = 1; open('/home/user/kept.txt', 'w').write('here')")
        before = await told(client, "list_variables")
        answer = await told(client, "restart_session")
        assert answer["success"] is True
        assert answer["epoch"] > before["epoch"]
        assert "NameError" in (await ran(client, "gone"))["error"]
        assert (await ran(client, "open('/home/user/kept.txt').read()"))["results"] == "'here'"


async def test_a_restart_of_a_session_that_was_never_used_gives_it_a_memory(connect: Connect) -> None:
    async with connect() as client:
        answer = await told(client, "restart_session")
        assert (answer["success"], answer["state"]) == (True, "idle")
        assert (await ran(client, "1 + 1"))["results"] == "2"


async def test_undo_brings_back_the_memory_from_before_the_last_cell(connect: Connect) -> None:
    async with connect() as client:
        await ran(client, "value = 'good'")
        await ran(client, "value = 'spoiled'")
        answer = await told(client, "undo_cells")
        assert (answer["success"], answer["undone"], answer["not_carried"]) == (True, 1, "")
        assert (await ran(client, "value"))["results"] == "'good'"


async def test_undo_beyond_what_is_kept_says_how_far_it_goes_and_changes_nothing(connect: Connect) -> None:
    async with connect() as client:
        await ran(client, "value = 1")
        answer = await client.call_tool("undo_cells", {"cells": 50})
        assert answer.is_error is True
        assert answer.structured_content is not None
        assert answer.structured_content["success"] is False
        assert "go back" in answer.structured_content["error"]
        assert answer.structured_content["next"]["tool"] == "list_variables"
        assert "over 1 cells" in answer.structured_content["error"]
        assert (await ran(client, "value"))["results"] == "1"


async def test_undo_in_a_session_in_which_nothing_ran_says_so(connect: Connect) -> None:
    async with connect() as client:
        answer = await told(client, "undo_cells")
        assert answer["success"] is False
        assert "has no memory" in answer["error"]
        assert (await told(client, answer["next"]["tool"], **answer["next"]["arguments"]))["success"] is True


async def test_a_branch_has_the_variables_and_the_files_and_goes_its_own_way(connect: Connect) -> None:
    async with connect() as client:
        data = await ran(client, "value = 1; open('/home/user/shared.txt', 'w').write('both')")
        answer = await told(client, "branch_session")
        assert answer["success"] is True
        assert (answer["branched_from"], answer["shares_files"]) == (data["session"]["id"], True)
        branch = answer["session_id"]
        assert (await ran(client, "value += 1; value", session_id=branch))["results"] == "2"
        assert (await ran(client, "open('/home/user/shared.txt').read()", session_id=branch))["results"] == "'both'"
        assert (await ran(client, "value"))["results"] == "1"


async def test_a_deleted_session_whose_files_its_branches_have_is_told_as_such(connect: Connect) -> None:
    async with connect() as client:
        name = (await ran(client, "value = 1"))["session"]["id"]
        branch = (await told(client, "branch_session"))["session_id"]
        assert (await told(client, "stop_session", session_id=name))["success"] is True
        looked = await told(client, "list_variables")
        assert (looked["success"], looked["variables"]) == (True, [])
        assert "state" not in looked
        assert "was deleted" in looked["note"]
        assert branch in looked["note"]
        for tool in ("undo_cells", "branch_session"):
            refused = await told(client, tool)
            assert branch in refused["error"]
            assert refused["next"] == {"tool": "list_variables", "arguments": {"session_id": branch}}


async def test_a_copy_has_files_of_its_own_and_tells_what_stayed_behind(connect: Connect) -> None:
    async with connect() as client:
        await ran(client, "value = 1; lock = (n for n in range(3)); open('/home/user/own.txt', 'w').write('first')")
        name = f"copy-{secrets.token_hex(4)}"
        answer = await told(client, "branch_session", name=name, copy=True)
        assert (answer["success"], answer["session_id"], answer["shares_files"]) == (True, name, False)
        assert "lock" in answer["not_carried"]
        await ran(client, "open('/home/user/own.txt', 'w').write('second')", session_id=name)
        assert (await ran(client, "value, open('/home/user/own.txt').read()"))["results"] == "(1, 'first')"


async def test_a_context_is_a_second_empty_memory_with_the_same_files(connect: Connect) -> None:
    async with connect() as client:
        # Before anything ran: the session is made for it.
        made = await told(client, "create_context", working_folder="/mnt/files/there")
        assert (made["success"], made["runtime"], made["state"]) == (True, "python", "idle")
        beside = made["session_id"]
        await ran(client, "value = 1; open('/mnt/files/there/x', 'w').write('from the session')")
        assert (await ran(client, "open('x').read(), 'value' in dir()", session_id=beside))["results"] == (
            "('from the session', False)"
        )
        assert (await told(client, "list_variables"))["session_id"] == made["context_of"]
        refused = await told(client, "create_context", language="julia")
        assert "node, python, r. No session was made" in refused["error"]


async def test_a_branch_whose_name_is_taken_is_proposed_without_it(connect: Connect) -> None:
    async with connect() as client:
        await ran(client, "value = 1")
        name = f"taken-{secrets.token_hex(4)}"
        assert (await told(client, "branch_session", name=name))["success"] is True
        answer = await told(client, "branch_session", name=name)
        assert answer["success"] is False
        assert answer["next"]["tool"] == "branch_session"
        assert "name" not in answer["next"]["arguments"]
        assert (await told(client, "branch_session", **answer["next"]["arguments"]))["success"] is True


async def test_a_name_that_cannot_be_one_is_refused_with_a_call_that_works(connect: Connect) -> None:
    async with connect() as client:
        await ran(client, "value = 1")
        answer = await told(client, "branch_session", name="Not A Name")
        assert answer["success"] is False
        again = await told(client, answer["next"]["tool"], **answer["next"]["arguments"])
        assert again["success"] is True


async def test_on_a_sessions_own_address_no_second_one_is_made(connect: Connect) -> None:
    name = f"own-{secrets.token_hex(4)}"
    async with connect(default_session=name) as client:
        await ran(client, "value = 1")
        before = set((await told(client, "list_variables", session_id="nobody-has-this"))["sessions"])
    async with connect(own_session=name) as client:
        for tool in ("create_context", "branch_session"):
            answer = await client.call_tool(tool, {})
            assert answer.is_error is True
            assert answer.structured_content is not None
            assert "needs a key" in answer.structured_content["error"]
        step = answer.structured_content["next"]
        assert (await told(client, step["tool"], **step["arguments"]))["session_id"] == name
    async with connect(default_session=name) as client:
        assert set((await told(client, "list_variables", session_id="nobody-has-this"))["sessions"]) == before


async def test_on_a_sessions_own_address_a_restart_of_another_is_refused(connect: Connect) -> None:
    own, other = f"own-{secrets.token_hex(4)}", f"other-{secrets.token_hex(4)}"
    async with connect(default_session=own) as client:
        await ran(client, "value = 1")
    async with connect(default_session=other) as client:
        await ran(client, "value = 2")
    async with connect(own_session=own) as client:
        answer = await told(client, "restart_session", session_id=other)
        assert (answer["success"], answer["session_id"], answer["sessions"]) == (False, own, [own])
        assert (await ran(client, "value", session_id="gate"))["results"] == "1"
    async with connect(default_session=other) as client:
        assert (await ran(client, "value"))["results"] == "2"


async def test_an_unknown_session_names_the_living_and_touches_none(connect: Connect) -> None:
    async with connect() as client:
        data = await ran(client, "value = 1")
        for tool in (
            "interrupt_session",
            "restart_session",
            "undo_cells",
            "branch_session",
            "create_context",
            "list_variables",
        ):
            answer = await client.call_tool(tool, {"session_id": "nobody-has-this"})
            assert answer.is_error is True
            said = answer.structured_content
            assert said is not None
            assert "nobody-has-this" in said["error"]
            assert "`workbench" not in said["error"]
            assert data["session"]["id"] in said["sessions"]
            assert said["next"]["tool"] == "list_variables"
        assert (await ran(client, "value"))["results"] == "1"


async def test_hints_say_what_a_tool_may_destroy_and_every_parameter_is_described(connect: Connect) -> None:
    async with connect(Family.KERNEL) as client:
        tools = {one.name: one for one in (await client.list_tools()).tools}
    assert set(tools) == {
        "interrupt_session",
        "restart_session",
        "undo_cells",
        "branch_session",
        "create_context",
        "list_variables",
    }
    hints = {name: one.annotations for name, one in tools.items()}
    assert [name for name, one in hints.items() if one and one.read_only_hint] == ["list_variables"]
    assert {name for name, one in hints.items() if one and one.destructive_hint} == {
        "interrupt_session",
        "restart_session",
        "undo_cells",
    }
    for tool in tools.values():
        assert all(one.get("description") for one in tool.input_schema["properties"].values()), tool.name
        assert "required" not in tool.input_schema
        assert tool.output_schema is not None
        assert {"success", "session_id", "error", "sessions", "next"} <= set(tool.output_schema["properties"])
