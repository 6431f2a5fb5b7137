"""Kernels that are programs: the same promises as for Python, but for what their memory cannot do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.kernel.notebook import open_notebook
from tests.runtimes.programs.hosted import House, text_of
from tests.runtimes.programs.languages import LANGUAGES

from workbench.errors import Conflict, InvalidRequest, KernelUnavailable
from workbench.model.execution import MemoryState, Outcome, PieceKind
from workbench.wire import kernels as wire

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.isolation]
MAIN: dict[str, Any] = {"sandbox": "sb", "kernel": "main"}
# On the engine that isolates nothing the kernels of other tests, and of other people, are in sight: only those of the
# sandbox, by the word for it that their folders have in their names.
_OWN = (
    "word=$(python3 -c 'import os, sys, zlib; print(format(zlib.crc32(os.fsencode(sys.argv[1])), str(\"08x\")))' "
    '"$WORKBENCH_SANDBOX:$TMPDIR"); own() { pgrep -f "[k]ernel-main,$word,"; }'
)
EVERY = pytest.mark.parametrize("runtime", LANGUAGES)


def _each(what: str) -> pytest.MarkDecorator:
    pairs = [(name, one) for name, language in LANGUAGES.items() for one in getattr(language, what)]
    return pytest.mark.parametrize(("runtime", "what"), pairs)


@EVERY
async def test_variables_stay_from_cell_to_cell(house: House, runtime: str) -> None:
    language = LANGUAGES[runtime]
    async with house.session(runtime) as session:
        assert (await session.run(language.keep)).outcome is Outcome.OK
        read = await session.run(language.read)
        assert (read.outcome, read.stdout.text, read.stderr.text) == (Outcome.OK, language.says, "")
        assert (read.receipt.state, read.receipt.epoch, read.receipt.execution_count) == (MemoryState.INTACT, 1, 2)


@EVERY
async def test_code_that_fails_is_a_result_and_costs_nothing(house: House, runtime: str) -> None:
    language = LANGUAGES[runtime]
    async with house.session(runtime) as session:
        await session.run(language.keep)
        failed = await session.run(language.fails)
        assert failed.outcome is Outcome.RAISED
        assert failed.error is not None
        assert (await session.run(language.read)).stdout.text == language.says


@EVERY
async def test_fifty_megabytes_arrive_whole(house: House, runtime: str) -> None:
    async with house.session(runtime) as session:
        cell = await session.send(LANGUAGES[runtime].flood)
        assert (await session.result(cell)).outcome is Outcome.OK
        text = text_of(await session.pieces(cell))
        assert len(text) == 50_000_001
        assert text.strip("y") == "\n"


@EVERY
async def test_what_is_printed_by_descriptors_belongs_to_the_cell(house: House, runtime: str) -> None:
    async with house.session(runtime) as session:
        said = await session.run(LANGUAGES[runtime].by_descriptor)
        assert (said.stdout.text, said.stderr.text) == ("out\n", "err\n")
        assert (await session.run(LANGUAGES[runtime].keep)).stdout.text == ""


@_each("endless")
async def test_an_interrupt_ends_the_cell_and_keeps_the_variables(house: House, runtime: str, what: str) -> None:
    language = LANGUAGES[runtime]
    async with house.session(runtime) as session:
        await session.run(language.keep)
        cell = await session.begin(language.endless[what])
        await session.cells.interrupt_kernel(wire.InterruptKernel(**MAIN))
        ended = await session.result(cell)
        assert (ended.outcome, ended.stdout.text) == (Outcome.INTERRUPTED, "on\n")
        after = await session.run(language.read)
        assert (after.stdout.text, after.receipt.state) == (language.says, MemoryState.INTACT)


@EVERY
async def test_a_cell_past_its_limit_is_interrupted_and_keeps_the_variables(house: House, runtime: str) -> None:
    language = LANGUAGES[runtime]
    async with house.session(runtime) as session:
        await session.run(language.keep)
        ended = await session.run(language.endless["a sleep"], limit_s=1)
        assert (ended.outcome, ended.stdout.text) == (Outcome.TIMED_OUT, "on\n")
        assert (await session.run(language.read)).stdout.text == language.says


@EVERY
async def test_a_cell_that_heeds_no_interrupt_is_ended_with_its_memory(house: House, runtime: str) -> None:
    async with house.session(runtime) as session:
        ended = await session.run(LANGUAGES[runtime].deaf, limit_s=1)
        assert (ended.outcome, ended.stdout.text) == (Outcome.TIMED_OUT, "on\n")
        assert (ended.receipt.state, ended.receipt.epoch) == (MemoryState.LOST, 2)
        assert (await session.run(LANGUAGES[runtime].keep)).outcome is Outcome.OK


@_each("deaths")
async def test_a_sudden_death_is_a_lost_cell_with_its_output_and_a_new_memory_follows(
    house: House, runtime: str, what: str
) -> None:
    language = LANGUAGES[runtime]
    code, words = language.deaths[what]
    async with house.session(runtime) as session:
        await session.run(language.keep)
        ended = await session.run(code)
        assert (ended.outcome, ended.stdout.text) == (Outcome.LOST, "last words\n")
        assert words in ended.explanation
        assert (ended.receipt.state, ended.receipt.epoch) == (MemoryState.LOST, 2)
        after = await session.run(language.read)
        assert after.stdout.text != language.says
        assert after.receipt.epoch == 2


@EVERY
async def test_a_death_between_cells_is_told_by_the_next_one(house: House, runtime: str) -> None:
    language = LANGUAGES[runtime]
    async with house.session(runtime) as session:
        await session.run(language.keep)
        await session.command(f"{_OWN}; kill -9 $(own)")
        await session.until(f"{_OWN}; own | wc -l", "1")
        after = await session.run(language.keep)
        assert (after.outcome, after.receipt.state, after.receipt.epoch) == (Outcome.OK, MemoryState.LOST, 2)


@EVERY
async def test_only_what_code_has_started_is_listed_and_not_the_kernel(house: House, runtime: str) -> None:
    language = LANGUAGES[runtime]
    async with house.session(runtime) as session:
        await session.start(runtime, "beside")
        await session.until_background()
        assert (await session.run(language.leaves)).outcome is Outcome.OK
        await session.until_background("sleep 4711")
        await session.run(language.leaves.replace("4711", "4712"), kernel="beside")
        # What has left its parent behind is listed as well.
        await session.command("setsid -f sleep 4713 >/dev/null 2>&1")
        await session.until_background("sleep 4711", "sleep 4712", "sleep 4713")
        await session.cells.restart_kernel(wire.RestartKernel(**MAIN))
        await session.until_background("sleep 4712", "sleep 4713")


@EVERY
async def test_a_restart_begins_anew(house: House, runtime: str) -> None:
    language = LANGUAGES[runtime]
    async with house.session(runtime) as session:
        await session.run(language.keep)
        report = await session.cells.restart_kernel(wire.RestartKernel(**MAIN))
        assert report.epoch == 2
        assert (await session.run(language.read)).stdout.text != language.says


async def test_nothing_is_left_of_a_kernel_that_ended(house: House) -> None:
    async with house.session("bash") as session:
        await session.until(f"{_OWN}; own | wc -l", "1")
        await session.cells.end_kernel(wire.EndKernel(**MAIN))
        await session.until(f"{_OWN}; ls -A $TMPDIR | grep -c kernel; own | wc -l", "0\n0")


async def test_two_kernels_of_two_languages_share_the_files_of_a_session(house: House) -> None:
    async with house.session("bash") as session:
        await session.start("stock", kernel="other")
        await session.run("echo from bash > ~/shared")
        read = await session.run(
            "import os\nprint(open(os.path.expanduser('~/shared')).read(), end='')", kernel="other"
        )
        assert read.stdout.text == "from bash\n"


async def test_a_runtime_that_there_is_not_is_refused_with_those_that_there_are(house: House) -> None:
    async with house.session() as session:
        with pytest.raises(InvalidRequest, match=r"no such runtime: 'cobol'; there are: bash, .*python, .*stock"):
            await session.start("cobol")


async def test_a_runtime_is_found_by_its_other_names(house: House) -> None:
    async with house.session("Shell") as session:
        assert (await session.run("echo $BASH_VERSION")).stdout.text[0].isdigit()


async def test_what_the_machine_lacks_is_said_with_what_to_install(house: House) -> None:
    async with house.session() as session:
        words = "Lacking is not installed on this machine: there is no no-such-program or /usr/lib/no-such-file; .*"
        with pytest.raises(KernelUnavailable, match=f"{words}`apt-get install -y no-such-package`"):
            await session.start("lacking")


@pytest.mark.parametrize(("name", "words"), [("broken", "no-such-program cannot be started: No such file"),
                                             ("failing", "exit code 3: it lacks a part")])  # fmt: skip
async def test_a_program_that_does_not_come_up_says_why(house: House, name: str, words: str) -> None:
    async with house.session() as session:
        with pytest.raises(KernelUnavailable, match=words):
            await session.start(name)


async def test_what_a_memory_cannot_do_is_refused_in_words(house: House) -> None:
    async with house.session("stock") as session:
        await session.run("kept = 41")
        refused = {
            "undo": session.cells.undo(wire.UndoCells(**MAIN, cells=1)),
            "copy of the memory": session.cells.branch(wire.BranchKernel(**MAIN, branch="b", epoch=2)),
        }
        for what, asked in refused.items():
            with pytest.raises(Conflict, match=f"there is no {what} here, Stock IPython: nobody has taught it"):
                await asked
        with pytest.raises(Conflict, match="kernels of Stock IPython do not tell their variables"):
            await session.cells.list_variables(wire.ListVariables(**MAIN))
        told = await session.run("print(kept)")
        assert told.stdout.text == "41\n"
        assert (told.receipt.snapshot.kept, told.receipt.snapshot.reason) == (0, "Stock IPython: nobody has taught it")


async def test_variables_are_not_copied_between_languages(house: House) -> None:
    async with house.session("python") as source, house.session("bash") as target:
        with pytest.raises(Conflict, match="Bash: a shell cannot be copied"):
            await source.cells.copy_into(wire.CopyInto(**MAIN, to_sandbox="sb2", to_kernel="main"), target.cells)


async def test_a_description_s_variables_are_in_its_environment(house: House) -> None:
    async with house.session("stock") as session:
        said = await session.run("import os\nprint(os.environ['OF_THE_DESCRIPTION'])")
        assert said.stdout.text == "yes\n"


async def test_the_connection_file_and_its_folder_are_gone_once_the_program_is_up(house: House) -> None:
    async with house.session("bash") as session:
        assert (await session.run("ls -A $TMPDIR")).stdout.text == ""


async def test_a_notebook_attaches_to_a_program(house: House) -> None:
    async with house.session("stock") as session:
        await session.run("shared = [1]")
        report = await session.cells.attach_kernel(wire.AttachKernel(**MAIN))
        async with open_notebook(report.connection_file) as notebook:
            assert (await notebook.run("shared.append(2)\nshared")).result == "[1, 2]"
        assert (await session.run("print(shared)")).stdout.text == "[1, 2]\n"


async def test_twenty_thousand_displays_arrive_in_order(house: House) -> None:
    async with house.session("stock") as session:
        code = "for i in range(20_000): display(i)"
        cell = await session.send(code)
        assert (await session.result(cell)).outcome is Outcome.OK
        pieces = [one for one in await session.pieces(cell) if one.kind is PieceKind.DISPLAY]
        assert [one.display.data["text/plain"] for one in pieces if one.display] == [str(i) for i in range(20_000)]


async def test_a_keeper_that_is_killed_takes_its_program_along(house: House) -> None:
    async with house.session("stock") as session:
        ended = await session.run(
            "import os\nprint('last words', flush=True)\nos.kill(os.getppid(), 9)\nwhile True: pass"
        )
        assert ended.outcome is Outcome.LOST
        assert "killed by signal 9" in ended.explanation
        assert (await session.run("import os\nprint(os.getpid() > 0)")).stdout.text == "True\n"
        await session.until(f"{_OWN}; own | wc -l", "1")


async def test_an_end_that_is_asked_for_while_a_program_starts_leaves_nothing(house: House) -> None:
    async with house.session() as session:
        for wait_s in (0.0, 0.05, 0.15, 0.3):
            starting = asyncio.create_task(session.start("stock"))
            # Not the time that matters but that it is another moment of the start each time.
            await asyncio.sleep(wait_s)
            await session.cells.end_kernel(wire.EndKernel(**MAIN))
            await asyncio.wait([starting])
            starting.exception()
        await session.until(f"{_OWN}; own | wc -l", "0")


async def test_a_program_that_writes_nonsense_into_its_sockets_harms_its_own_session_alone(house: House) -> None:
    nonsense = """
import os, stat
for number in range(3, 200):
    try:
        if stat.S_ISSOCK(os.fstat(number).st_mode):
            os.write(number, bytes(range(256)) * 40)
    except OSError:
        pass
"""
    async with house.session("stock") as session, house.session("bash") as other:
        await other.run("kept=41")
        ended = await session.run(nonsense, limit_s=2)
        assert ended.outcome in (Outcome.OK, Outcome.TIMED_OUT, Outcome.LOST)
        await session.cells.restart_kernel(wire.RestartKernel(**MAIN))
        assert (await session.run("print('again')")).stdout.text == "again\n"
        assert (await other.run("echo $kept")).stdout.text == "41\n"


async def test_a_keeper_that_is_stopped_harms_its_own_session_alone(house: House) -> None:
    async with house.session("stock") as session, house.session("bash") as other:
        # Not before the host has seen it begin.
        code = "while not os.path.exists(os.path.expanduser('~/go')): pass\nos.kill(os.getppid(), 19)"
        cell = await session.begin(f"import os\nprint('on', flush=True)\n{code}", limit_s=5)
        await session.command("touch ~/go")
        stopped = await session.result(cell)
        assert stopped.outcome in (Outcome.TIMED_OUT, Outcome.LOST)
        assert (await session.run("print('again')")).stdout.text == "again\n"
        assert (await other.run("echo on")).stdout.text == "on\n"


async def test_exit_and_failures_under_set_e_end_the_cell_and_not_the_shell(house: House) -> None:
    async with house.session("bash") as session:
        left = await session.run("kept=41; echo a; (exit 5); echo $?; exit 3; echo never")
        assert (left.outcome, left.stdout.text) == (Outcome.RAISED, "a\n5\n")
        assert left.error is not None
        assert left.error.message == "3"
        failed = await session.run("set -euo pipefail\nfalse || echo b\nfalse | cat\necho never")
        assert (failed.outcome, failed.stdout.text, failed.stderr.text) == (Outcome.RAISED, "b\n", "")
        after = await session.run("set +e; false; echo $kept")
        assert (after.stdout.text, after.receipt.epoch) == ("41\n", 1)


@pytest.mark.parametrize("code", ["echo 'open", 'echo "open', "echo $((", "if true; then", "fi", "echo ${"])
async def test_a_cell_that_does_not_parse_is_an_error_and_the_next_one_runs(house: House, code: str) -> None:
    async with house.session("bash") as session:
        failed = await session.run(code, limit_s=10)
        assert (failed.outcome, failed.receipt.epoch) == (Outcome.RAISED, 1)
        assert (await session.run("echo on")).stdout.text == "on\n"


async def test_what_is_killed_in_a_cell_costs_nothing_and_the_shell_says_nothing_of_terminals(house: House) -> None:
    async with house.session("bash") as session:
        said = await session.run("yes | head -1; sh -c 'kill -SEGV $$'; echo $?")
        assert (said.stdout.text, said.stderr.text) == ("y\n139\n", "")


async def test_a_shell_s_cells_read_nothing_and_tell_where_they_stand(house: House) -> None:
    async with house.session("bash") as session:
        said = await session.run('cat; read line; echo "$?$line"; cd /usr')
        assert (said.stdout.text, said.receipt.working_folder) == ("1\n", "/usr")


async def test_what_runs_on_in_the_background_prints_into_a_later_cell(house: House) -> None:
    async with house.session("bash") as session:
        await session.run("(until [ -e ~/go ]; do sleep 0.01; done; echo late; touch ~/gone) &")
        later = await session.run("touch ~/go; until [ -e ~/gone ]; do sleep 0.01; done; echo now")
        assert sorted(later.stdout.text.split()) == ["late", "now"]
