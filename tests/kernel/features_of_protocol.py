"""Features that a notebook asks for by messages."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from tests.kernel.feature import Feature
from tests.kernel.notebook import Notebook, cell

_COMM = """\
heard = []
def opened(comm, message):
    comm.on_msg(lambda m: comm.send({'echo': m['content']['data']}))
    comm.send({'hello': message['content']['data']})
get_ipython().kernel.comm_manager.register_target('parity', opened)
"""
# Stock hears of the interrupt when something else wakes the loop.
_AWAITING = """\
import asyncio, time
begin = time.monotonic()
print('begun', flush=True)
try:
    await asyncio.sleep(3)
finally:
    print('woken at once' if time.monotonic() - begin < 2 else 'slept')
"""
_CATCHING = """\
import time
try:
    print('begun', flush=True)
    time.sleep(20)
except KeyboardInterrupt:
    print('caught')
"""


async def _kernel_info(notebook: Notebook) -> None:
    reply = (await notebook.ask("kernel_info_request")).reply
    assert reply["status"] == "ok"
    assert reply["language_info"]["name"] == "python"
    assert reply["language_info"]["file_extension"] == ".py"
    assert reply["protocol_version"].startswith("5.")
    assert reply["implementation"] == "ipython"
    assert "debugger" in reply["supported_features"]


async def _kernel_info_on_control(notebook: Notebook) -> None:
    assert (await notebook.ask("kernel_info_request", channel="control")).reply["status"] == "ok"


async def _completion(notebook: Notebook) -> None:
    await notebook.run("completable_name = 1")
    reply = (await notebook.ask("complete_request", {"code": "completable_n", "cursor_pos": 13})).reply
    assert reply["matches"] == ["completable_name"]
    assert (reply["cursor_start"], reply["cursor_end"]) == (0, 13)


async def _completion_of_attributes(notebook: Notebook) -> None:
    await notebook.run("import os")
    reply = (await notebook.ask("complete_request", {"code": "os.getcw", "cursor_pos": 8})).reply
    assert any(match.endswith("getcwd") for match in reply["matches"])
    assert "_jupyter_types_experimental" in reply["metadata"]


async def _inspection(notebook: Notebook) -> None:
    await notebook.run("def inspected():\n    'A docstring.'")
    reply = (await notebook.ask("inspect_request", {"code": "inspected", "cursor_pos": 5, "detail_level": 0})).reply
    assert reply["found"]
    assert "A docstring." in reply["data"]["text/plain"]


async def _inspection_of_nothing(notebook: Notebook) -> None:
    reply = (await notebook.ask("inspect_request", {"code": "nothing_here", "cursor_pos": 5, "detail_level": 0})).reply
    assert reply["status"] == "ok"
    assert not reply["found"]


async def _is_complete(notebook: Notebook) -> None:
    for code, status in {"1 + 1": "complete", "for i in x:": "incomplete", "x = = 1": "invalid"}.items():
        assert (await notebook.ask("is_complete_request", {"code": code})).reply["status"] == status


async def _history(notebook: Notebook) -> None:
    for number in range(3):
        await notebook.run(f"history_{number} = {number}")
    await notebook.run("'the output'")
    whole = {"output": False, "raw": True, "hist_access_type": "tail", "n": 4}
    reply = (await notebook.ask("history_request", whole)).reply
    assert [entry[2] for entry in reply["history"]][:3] == [f"history_{number} = {number}" for number in range(3)]
    session, line = reply["history"][0][:2]
    part = {
        "output": False,
        "raw": True,
        "hist_access_type": "range",
        "session": session,
        "start": line,
        "stop": line + 2,
    }
    reply = (await notebook.ask("history_request", part)).reply
    assert [entry[2] for entry in reply["history"]] == ["history_0 = 0", "history_1 = 1"]
    search = {"output": False, "raw": True, "hist_access_type": "search", "pattern": "history_*", "unique": True}
    reply = (await notebook.ask("history_request", search)).reply
    assert len(reply["history"]) == 3


async def _user_expressions(notebook: Notebook) -> None:
    answer = await notebook.run("ux = 20", user_expressions={"good": "ux + 1", "bad": "1 / 0"})
    told: dict[str, Any] = answer.reply["user_expressions"]
    assert told["good"]["data"]["text/plain"] == "21"
    assert told["bad"]["ename"] == "ZeroDivisionError"


async def _silent(notebook: Notebook) -> None:
    before = (await notebook.run("1")).reply["execution_count"]
    answer = await notebook.run("quiet = 5\nquiet", silent=True, store_history=False)
    assert answer.told == []
    assert (await notebook.run("quiet")).result == "5"
    assert (await notebook.run("1")).reply["execution_count"] == before + 2


async def _not_stored(notebook: Notebook) -> None:
    before = (await notebook.run("1")).reply["execution_count"]
    answer = await notebook.run("'shown'", store_history=False)
    assert answer.result == "'shown'"
    assert (await notebook.run("1")).reply["execution_count"] == before + 1


async def _aborted(notebook: Notebook) -> None:
    first = notebook.send("execute_request", cell("import time\ntime.sleep(0.3)\n1 / 0"))
    second = notebook.send("execute_request", cell("print('never')"))
    async with asyncio.timeout(20):
        assert (await notebook.answer_of(first)).reply["status"] == "error"
        answer = await notebook.answer_of(second)
    assert answer.reply["status"] == "aborted"
    assert answer.stdout == ""


async def _input(notebook: Notebook) -> None:
    notebook.inputs.append("typed")
    answer = await notebook.run("got = input('say: ')\nprint('got', got)", allow_stdin=True)
    assert answer.stdout.endswith("got typed\n")
    assert notebook.prompts.pop() == {"prompt": "say: ", "password": False}


async def _getpass(notebook: Notebook) -> None:
    notebook.inputs.append("secret")
    answer = await notebook.run("import getpass\nlen(getpass.getpass('pw: '))", allow_stdin=True)
    assert answer.result == "6"
    assert notebook.prompts.pop() == {"prompt": "pw: ", "password": True}


async def _pdb(notebook: Notebook) -> None:
    await notebook.run("def broken(number):\n    return 1 / number")
    notebook.inputs += ["p number + 41", "q"]
    await notebook.run("broken(0)")
    answer = await notebook.run("%debug", allow_stdin=True)
    assert "41" in answer.stdout
    assert answer.reply["status"] == "ok"
    assert not notebook.inputs


async def _breakpoint(notebook: Notebook) -> None:
    notebook.inputs += ["p 6 * 7", "c"]
    answer = await notebook.run("import pdb\npdb.set_trace()\nprint('went on')", allow_stdin=True)
    assert "42" in answer.stdout
    assert "went on" in answer.stdout


async def _input_refused(notebook: Notebook) -> None:
    assert (await notebook.run("input('x')")).error["ename"] == "StdinNotImplementedError"


async def _interrupt(notebook: Notebook) -> None:
    code = "print('begun', flush=True)\nwhile True: pass"
    answer = await notebook.run_and(code, "begun", notebook.interrupt)
    assert answer.error["ename"] == "KeyboardInterrupt"
    await _drain_control(notebook)


async def _interrupt_of_an_await(notebook: Notebook) -> None:
    answer = await notebook.run_and(_AWAITING, "begun", notebook.interrupt)
    assert "woken at once" in answer.stdout
    assert answer.reply["status"] == "error"
    await _drain_control(notebook)


async def _interrupt_of_a_command(notebook: Notebook) -> None:
    code = "!echo begun; sleep 3\nprint('went on')"
    answer = await notebook.run_and(code, "begun", notebook.interrupt)
    assert "went on" not in answer.stdout
    await _drain_control(notebook)


async def _interrupt_caught(notebook: Notebook) -> None:
    answer = await notebook.run_and(_CATCHING, "begun", notebook.interrupt)
    assert "caught" in answer.stdout
    assert answer.reply["status"] == "ok"
    await _drain_control(notebook)


async def _drain_control(notebook: Notebook) -> None:
    reply = await notebook.client.control_channel.get_msg(timeout=10)
    assert reply["msg_type"] == "interrupt_reply"


async def _comm(notebook: Notebook) -> None:
    await notebook.run(_COMM)
    identity = uuid.uuid4().hex
    opening = {"comm_id": identity, "target_name": "parity", "data": {"n": 1}}
    notebook.send("comm_open", opening)
    await notebook.until(lambda: _said(notebook, identity, {"hello": {"n": 1}}))
    notebook.send("comm_msg", {"comm_id": identity, "data": {"n": 2}})
    await notebook.until(lambda: _said(notebook, identity, {"echo": {"n": 2}}))
    info = (await notebook.ask("comm_info_request", {"target_name": "parity"})).reply
    assert identity in info["comms"]
    notebook.send("comm_close", {"comm_id": identity, "data": {}})
    info = (await notebook.ask("comm_info_request", {"target_name": "parity"})).reply
    assert identity not in info["comms"]


def _said(notebook: Notebook, identity: str, data: dict[str, Any]) -> bool:
    return any(
        kind == "comm_msg" and content["comm_id"] == identity and content["data"] == data
        for kind, content in notebook.stray
    )


async def _comm_of_the_kernel(notebook: Notebook) -> None:
    answer = await notebook.run(
        "from comm import create_comm\nc = create_comm(target_name='of_the_kernel', data={'x': 1})\n"
        "c.send({'y': 2})\nc.close()"
    )
    assert answer.kinds() == ["comm_open", "comm_msg", "comm_close"]
    assert answer.told[1][1]["data"] == {"y": 2}


async def _debugger(notebook: Notebook) -> None:
    def request(command: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"type": "request", "command": command, "seq": 1, "arguments": arguments}

    first = {"clientID": "parity", "adapterID": "", "pathFormat": "path", "linesStartAt1": True}
    reply = (await notebook.ask("debug_request", request("initialize", first), "control")).reply
    assert reply["success"], reply
    assert reply["body"]["supportsSetVariable"]
    attached = (await notebook.ask("debug_request", request("attach", {}), "control")).reply
    assert attached["success"], attached
    info = (await notebook.ask("debug_request", request("debugInfo", {}), "control")).reply
    assert info["body"]["isStarted"], info
    dumped = (await notebook.ask("debug_request", request("dumpCell", {"code": "1 + 1"}), "control")).reply
    assert dumped["body"]["sourcePath"], dumped
    assert (await notebook.run("1 + 1")).result == "2"
    left = {"restart": False, "terminateDebuggee": False}
    assert (await notebook.ask("debug_request", request("disconnect", left), "control")).reply["success"]


async def _usage(notebook: Notebook) -> None:
    reply = (await notebook.ask("usage_request", channel="control")).reply
    assert reply["kernel_cpu"] >= 0
    assert reply["host_virtual_memory"]


async def _exit(notebook: Notebook) -> None:
    answer = await notebook.run("from_before = 1\nimport sys\nsys.exit(0)")
    assert answer.reply["status"] == "ok", answer
    assert (await notebook.run("from_before")).result == "1"


async def _set_next_input(notebook: Notebook) -> None:
    answer = await notebook.run("get_ipython().set_next_input('the next')")
    assert [one["text"] for one in answer.reply["payload"]] == ["the next"]


async def _execution_state(notebook: Notebook) -> None:
    request = notebook.send("execute_request", cell("1"))
    states = []
    async with asyncio.timeout(20):
        while "idle" not in states:
            message = await notebook.client.iopub_channel.get_msg()
            if message["parent_header"].get("msg_id") == request and message["msg_type"] == "status":
                states.append(message["content"]["execution_state"])
        await notebook.client.shell_channel.get_msg(timeout=20)
    assert states == ["busy", "idle"]


PROTOCOL = [
    Feature("kernel_info", _kernel_info),
    Feature("kernel_info on control", _kernel_info_on_control),
    Feature("completion", _completion),
    Feature("completion of attributes", _completion_of_attributes),
    Feature("inspection", _inspection),
    Feature("inspection of nothing", _inspection_of_nothing),
    Feature("is_complete", _is_complete),
    Feature("history_request", _history),
    Feature("user_expressions", _user_expressions),
    Feature("silent", _silent),
    Feature("store_history=False", _not_stored),
    Feature("cells after an error are aborted", _aborted),
    Feature("input()", _input),
    Feature("getpass()", _getpass),
    Feature("%debug with somebody who types", _pdb),
    Feature("pdb.set_trace()", _breakpoint),
    Feature("input() where nobody can type", _input_refused),
    Feature("interrupt", _interrupt),
    Feature("interrupt of an await", _interrupt_of_an_await),
    Feature("interrupt of !cmd", _interrupt_of_a_command),
    Feature("an interrupt that is caught", _interrupt_caught),
    Feature("comms that the notebook opens", _comm),
    Feature("comms that the kernel opens", _comm_of_the_kernel),
    Feature("the debugger", _debugger),
    Feature("usage", _usage),
    Feature("sys.exit(0) ends the cell", _exit),
    Feature("set_next_input", _set_next_input),
    Feature("busy and idle", _execution_state),
]
