"""The life of a host: who may start it, what killing its parts costs, and that it leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from tests.host.support import (
    all_pids,
    assert_nothing_left,
    descendants,
    ephemeral_files,
    eventually,
    host_pids,
    make_sandbox,
    output_of,
    read,
    run_code,
    run_folders,
    start_code,
    stop,
    whole_output,
    workbench,
    zygotes,
)

from workbench.data_folder import DataFolder
from workbench.errors import Conflict, HostUnavailable, NotFound
from workbench.host_client.connection import HostConnection
from workbench.host_client.find import all_hosts, connect_or_start
from workbench.images.build import image_folder
from workbench.images.recipe import load_recipe
from workbench.model.capability import Level
from workbench.settings import Settings
from workbench.wire import host as wire

pytestmark = pytest.mark.isolation


async def status_of(host: HostConnection) -> wire.StatusAnswer:
    return await host.ask(wire.Status(), wire.StatusAnswer)


async def test_two_clients_at_once_start_one_host(settings: Settings) -> None:
    first, second = await asyncio.gather(connect_or_start(settings, os.environ), connect_or_start(settings, os.environ))
    async with first, second:
        assert first.greeting.host == second.greeting.host
        assert len(run_folders(settings)) == 1


async def test_killing_a_client_touches_no_sandbox(host: HostConnection, settings: Settings) -> None:
    code = "import time\nfor n in range(30):\n print(n, flush=True)\n time.sleep(0.05)"
    command = workbench(settings, "exec", code)
    eventually(lambda: read(f"/proc/{command.pid}/cmdline"), "the client runs")
    sandboxes: tuple[wire.SandboxReport, ...] = ()
    while not sandboxes:
        sandboxes = (await host.ask(wire.ListSandboxes(), wire.SandboxList)).sandboxes
    sandbox = await make_sandbox(host)
    process = await start_code(host, sandbox, code)
    command.kill()
    command.wait()
    for stream in (command.stdout, command.stderr):
        assert stream is not None
        stream.close()
    assert (await whole_output(host, sandbox, process)).split() == [b"%d" % n for n in range(30)]
    assert await host.ask(wire.DescribeSandbox(sandbox=sandboxes[0].sandbox), wire.SandboxReport)


async def test_output_is_kept_while_nobody_reads(settings: Settings) -> None:
    async with await connect_or_start(settings, os.environ) as first:
        sandbox = await make_sandbox(first)
        process = await start_code(first, sandbox, "for n in range(400_000): print('line', n)")
    async with await connect_or_start(settings, os.environ) as second:
        said = await whole_output(second, sandbox, process)
    assert said == b"".join(b"line %d\n" % n for n in range(400_000))


async def test_a_host_told_to_stop_leaves_nothing(host: HostConnection, settings: Settings) -> None:
    pid = (await status_of(host)).pid
    await make_sandbox(host)
    pids = [pid, *descendants(pid)]
    await stop(host)
    assert_nothing_left(settings, [host.greeting.host], pids)


async def test_a_host_killed_with_9_leaves_nothing_and_the_next_tells_what_was_lost(
    host: HostConnection, settings: Settings
) -> None:
    pid = (await status_of(host)).pid
    sandbox = await make_sandbox(host)
    await start_code(host, sandbox, "import time; time.sleep(1000)")
    pids = [pid, *descendants(pid)]
    assert len(pids) >= 5, "host, zygote, guardian, pid 1, code"
    os.kill(pid, signal.SIGKILL)
    assert_nothing_left(settings, [host.greeting.host], pids)
    async with await connect_or_start(settings, os.environ) as successor:
        lost = (await status_of(successor)).lost
        assert [(one.sandbox, one.host) for one in lost] == [(sandbox, host.greeting.host)]
        with pytest.raises(NotFound, match="ended with an earlier host"):
            await successor.ask(wire.DescribeSandbox(sandbox=sandbox), wire.SandboxReport)


async def test_if_the_guardian_was_killed_too_the_next_host_sweeps(host: HostConnection, settings: Settings) -> None:
    pid = (await status_of(host)).pid
    sandbox = await make_sandbox(host)
    pids = [pid, *descendants(pid)]
    guardian = next(child for child in pids if b"guardian" in read(f"/proc/{child}/cmdline"))
    os.kill(guardian, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    async with await connect_or_start(settings, os.environ) as successor:
        assert [one.sandbox for one in (await status_of(successor)).lost] == [sandbox]
        assert len(run_folders(settings)) == 1
        successor_pid = (await status_of(successor)).pid
        pids += [successor_pid, *descendants(successor_pid)]
        await stop(successor)
    assert_nothing_left(settings, [host.greeting.host, successor.greeting.host], pids)


async def test_the_death_of_a_zygote_costs_no_sandbox(host: HostConnection) -> None:
    pid = (await status_of(host)).pid
    sandbox = await make_sandbox(host)
    process = await start_code(
        host, sandbox, "input_ = open('/tmp/go', 'x')\nimport time; time.sleep(1); print('alive')"
    )
    (zygote,) = zygotes(pid)
    os.kill(zygote, signal.SIGKILL)
    assert await whole_output(host, sandbox, process) == b"alive\n"
    assert await run_code(host, sandbox, "print(1)") == b"1\n", "the old sandbox still starts processes"
    again = await make_sandbox(host)
    assert await run_code(host, again, "print(2)") == b"2\n", "and new ones are made by a new zygote"
    tier = await host.ask(wire.ChangeTier(sandbox=sandbox, tier="medium"), wire.SandboxReport)
    assert tier.tier == "medium", "also what a zygote does for a live sandbox works with another one"


OLD_HOST = """
import sys, os
from workbench.images.build import image_folder
from workbench.images.recipe import load_recipe
from workbench.model.capability import Level
from workbench.settings import Settings
from workbench.host.main import main
sys.exit(main(Settings.from_env(os.environ), lambda line: print(line, flush=True), version="0.0.1"))
"""


async def test_a_newer_client_drains_an_older_host_and_breaks_nothing(settings: Settings) -> None:
    old = subprocess.Popen([sys.executable, "-c", OLD_HOST], env={**os.environ, **settings.to_env()})
    try:
        eventually((settings.data_dir / "host.sock").exists, "the old host listens")
        old_socket = next(DataFolder(settings.data_dir).run_folders()).socket
        async with await HostConnection.open(old_socket, version="0.0.1") as before:
            sandbox = await make_sandbox(before)
            async with await connect_or_start(settings, os.environ) as new:
                assert new.greeting.host != before.greeting.host
                assert await run_code(before, sandbox, "print('still here')") == b"still here\n"
                assert await run_code(new, await make_sandbox(new), "print('new')") == b"new\n"
                hosts = await all_hosts(settings)
                assert [one.greeting.draining for one in hosts] == [False, True]
                for one in hosts:
                    await one.aclose()
            await before.ask(wire.CloseSandbox(sandbox=sandbox), wire.Done)
        eventually(lambda: old.poll() is not None, "the old host leaves with its last sandbox")
        assert old.returncode == 0
    finally:
        old.kill()
        old.wait()


async def test_a_host_refuses_to_start_below_the_level_and_names_the_step(settings: Settings) -> None:
    weak = replace(settings, engine="process")
    with pytest.raises(HostUnavailable, match="WORKBENCH_MIN_LEVEL is isolated, and here user-namespace is absent"):
        await connect_or_start(weak, os.environ)
    assert not run_folders(settings)


async def test_the_strict_level_is_for_hosts_with_control_groups(settings: Settings) -> None:
    strict = replace(settings, min_level=Level.STRICT)
    if os.geteuid() == 0:
        async with await connect_or_start(strict, os.environ) as host:
            assert (await status_of(host)).level == "strict"
            await stop(host)
    else:
        with pytest.raises(HostUnavailable, match="is strict, and here memory is watched"):
            await connect_or_start(strict, os.environ)


async def test_the_process_engine_says_so_everywhere(settings: Settings) -> None:
    bare = replace(settings, engine="process", min_level=Level.OPEN)
    async with await connect_or_start(bare, os.environ) as host:
        assert "nothing is isolated" in (await status_of(host)).warning
        report = await host.ask(wire.CreateSandbox(sandbox="sb-bare"), wire.SandboxReport)
        assert not report.isolated
        assert report.warning
        assert b"WARNING" in read(str(settings.data_dir / "host.log")), "and on every start"
        code, out, err = output_of(workbench(bare, "exec", "print(1)"))
        assert (code, out) == (0, "1\n")
        assert report.warning in err
        await stop(host)


async def test_a_host_does_not_inherit_keys_of_who_starts_it(settings: Settings) -> None:
    environ = {**os.environ, "SECRET_API_KEY": "canary-5f1c"}
    async with await connect_or_start(settings, environ) as host:
        pid = (await status_of(host)).pid
        for one in [pid, *descendants(pid)]:
            assert b"canary-5f1c" not in read(f"/proc/{one}/environ")


async def test_a_data_folder_may_be_deeper_than_a_socket_address_is_long(settings: Settings) -> None:
    deep = replace(settings, data_dir=settings.data_dir / ("a" * 60) / ("b" * 60))
    async with await connect_or_start(deep, os.environ) as host:
        assert await run_code(host, await make_sandbox(host), "print(1)") == b"1\n"
        await stop(host)
    eventually(lambda: not run_folders(deep), "it left")


async def test_a_second_host_in_one_data_folder_is_refused(host: HostConnection, settings: Settings) -> None:
    code, out, err = output_of(workbench(settings, "host", "run"))
    assert code == 1
    assert "a host is active" in out + err
    assert [host.greeting.host] == [path.name for path in run_folders(settings)]
    assert len([pid for pid in host_pids(settings) if pid in all_pids()]) == 1


async def test_a_new_image_is_used_from_then_on_and_living_sandboxes_keep_theirs(settings: Settings) -> None:
    recipe = load_recipe("python")
    built = image_folder(settings.images_dir, recipe)
    mine = replace(settings, images_dir=settings.data_dir.parent / "images")
    description = image_folder(mine.images_dir, recipe) / "image.json"
    description.parent.mkdir(parents=True)
    description.write_text((built / "image.json").read_text())
    async with await connect_or_start(mine, os.environ) as host:
        before = await make_sandbox(host)
        assert await run_code(host, before, MARK) == b"None\n"
        changed = json.loads(description.read_text())
        changed["env"].append(["IMAGE_MARK", "second"])
        description.write_text(json.dumps(changed))
        await host.ask(wire.RefreshImage(), wire.Done)
        assert await run_code(host, await make_sandbox(host), MARK) == b"second\n"
        assert await run_code(host, before, MARK) == b"None\n"
        assert len(zygotes((await status_of(host)).pid)) == 1, "the old zygote has drained"


MARK = "import os; print(os.environ.get('IMAGE_MARK'))"


async def test_one_mount_is_in_one_living_sandbox_at_a_time(host: HostConnection) -> None:
    first = await make_sandbox(host, files="shared")
    with pytest.raises(Conflict, match=f"mount shared is in use by sandbox {first}"):
        await make_sandbox(host, files="shared")
    await host.ask(wire.CloseSandbox(sandbox=first), wire.Done)
    assert await run_code(host, await make_sandbox(host, files="shared"), "print(1)") == b"1\n"


DEEP = """
import os
os.chdir('/mnt/files')
for n in range(2000):
    os.mkdir('d')
    os.chdir('d')
open('x', 'w').write('y')
os.mkdir('/mnt/files/closed')
open('/mnt/files/closed/x', 'w').write('y')
os.chmod('/mnt/files/closed', 0)
print('made')
"""


async def test_a_tree_that_a_guest_made_to_stay_goes_with_its_sandbox(host: HostConnection, settings: Settings) -> None:
    sandbox = await make_sandbox(host)
    assert await run_code(host, sandbox, DEEP) == b"made\n"
    await host.ask(wire.CloseSandbox(sandbox=sandbox), wire.Done)
    assert ephemeral_files(settings) == []


async def test_a_tree_that_a_guest_made_to_stay_keeps_no_later_host_from_starting(
    host: HostConnection, settings: Settings
) -> None:
    pid = (await status_of(host)).pid
    assert await run_code(host, await make_sandbox(host), DEEP) == b"made\n"
    pids = [pid, *descendants(pid)]
    os.kill(pid, signal.SIGKILL)
    assert_nothing_left(settings, [host.greeting.host], pids)
    async with await connect_or_start(settings, os.environ) as successor:
        assert await run_code(successor, await make_sandbox(successor), "print(1)") == b"1\n"


@pytest.mark.parametrize("after_s", [0.0, 0.2, 0.5, 0.9])
async def test_a_host_killed_while_it_starts_leaves_nothing(settings: Settings, after_s: float) -> None:
    starting = workbench(settings, "host", "run")
    eventually(lambda: run_folders(settings), "it has begun")
    await asyncio.sleep(after_s)
    (run,) = run_folders(settings)
    pids = [starting.pid, *descendants(starting.pid)]
    starting.kill()
    output_of(starting)
    assert_nothing_left(settings, [run.name], pids)


async def test_a_host_told_to_stop_while_it_starts_leaves_in_good_order(settings: Settings) -> None:
    starting = workbench(settings, "host", "run")
    eventually(lambda: run_folders(settings), "it has begun")
    (run,) = run_folders(settings)
    starting.terminate()
    assert output_of(starting)[0] == 0
    assert_nothing_left(settings, [run.name], [starting.pid])


async def test_a_mount_of_a_draining_host_is_not_given_to_its_successor(settings: Settings) -> None:
    async with await connect_or_start(settings, os.environ) as old:
        first = await make_sandbox(old, files="kept")
        await old.ask(wire.Drain(), wire.Done)
        async with await connect_or_start(settings, os.environ) as new:
            assert new.greeting.host != old.greeting.host
            with pytest.raises(Conflict, match="mount kept is in use by a sandbox that is being made, or of another"):
                await make_sandbox(new, files="kept")
            await old.ask(wire.CloseSandbox(sandbox=first), wire.Done)
            assert await run_code(new, await make_sandbox(new, files="kept"), "print(1)") == b"1\n"
