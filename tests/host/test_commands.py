"""Commands in real sandboxes: what ends with them, and what lives on."""

from __future__ import annotations

from tests.host.support import WAIT_S, make_sandbox

from workbench.host_client.connection import HostConnection
from workbench.model.execution import BackgroundProcess, CommandResult, Outcome
from workbench.model.ids import new_cell_id
from workbench.wire import kernels as wire
from workbench.wire.host import Done


async def bash(host: HostConnection, sandbox: str, command: str, limit_s: float = WAIT_S) -> CommandResult:
    request = wire.RunCommand(sandbox=sandbox, cell=new_cell_id(), command=command, limit_s=limit_s, wait_s=WAIT_S)
    report = await host.ask(request, wire.CellReport)
    assert report.command_result is not None
    return report.command_result


async def background(host: HostConnection, sandbox: str) -> tuple[BackgroundProcess, ...]:
    return (await host.ask(wire.ListProcesses(sandbox=sandbox), wire.ProcessList)).processes


async def test_a_command_starts_in_home_and_its_exit_code_is_told(host: HostConnection) -> None:
    sandbox = await make_sandbox(host)
    result = await bash(host, sandbox, "pwd; echo oops >&2; exit 3")
    assert (result.outcome, result.exit_code) == (Outcome.RAISED, 3)
    assert (result.stdout.text, result.stderr.text) == ("/home/user\n", "oops\n")
    assert (await bash(host, sandbox, "kill -SEGV $$")).exit_code == 139


async def test_at_the_limit_the_whole_group_ends_also_who_ignores_the_request(host: HostConnection) -> None:
    sandbox = await make_sandbox(host)
    result = await bash(host, sandbox, "echo begun; (trap '' TERM; sleep 600) & sleep 600", limit_s=0.5)
    assert result.outcome is Outcome.TIMED_OUT
    assert result.stdout.text == "begun\n"
    assert await background(host, sandbox) == ()


async def test_what_was_left_in_the_background_lives_on_and_may_go_on_printing(host: HostConnection) -> None:
    sandbox = await make_sandbox(host)
    talk = "for n in $(seq 20); do echo $n; sleep 0.05; done; echo heard > done"
    result = await bash(host, sandbox, f"(sleep 0.5; {talk}; sleep 600) & echo left")
    assert (result.outcome, result.stdout.text) == (Outcome.OK, "left\n")
    assert await background(host, sandbox)
    waited = await bash(host, sandbox, "until [ -e done ]; do sleep 0.05; done; cat done")
    assert waited.stdout.text == "heard\n", "its pipe was not closed under it"


async def test_long_output_is_whole_in_a_file_that_the_agent_owns(host: HostConnection) -> None:
    sandbox = await make_sandbox(host)
    result = await bash(host, sandbox, "seq 100000")
    assert result.stdout.lines == 100_000
    assert result.stdout.file_path is not None
    path = result.stdout.file_path
    seen = await bash(host, sandbox, f"seq 100000 | cmp - {path} && rm {path} && rmdir /mnt/files/outputs && echo same")
    assert seen.stdout.text == "same\n", seen.stderr.text


async def test_a_command_that_is_stopped_before_it_has_a_process_is_stopped(host: HostConnection) -> None:
    sandbox = await make_sandbox(host)
    for _ in range(20):
        cell = new_cell_id()
        await host.ask(wire.RunCommand(sandbox=sandbox, cell=cell, command="sleep 100", limit_s=90.0), wire.CellReport)
        await host.ask(wire.InterruptCommand(sandbox=sandbox, cell=cell), Done)
        ended = (
            await host.ask(wire.WaitCell(sandbox=sandbox, cell=cell, wait_s=WAIT_S), wire.CellReport)
        ).command_result
        assert ended is not None
        assert ended.outcome is Outcome.INTERRUPTED
