"""Python functions as tools: described by their type hints, run in processes of their own."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.host.support import alive, eventually
from tests.toolkits.worlds import SERVERS, added, call, source_of
from tests.unit.core.router.sources import session

from workbench.errors import InvalidRequest, NotConfigured, NotFound
from workbench.model.session import Session
from workbench.testing.tools_contract import ToolSourceContract, Works
from workbench.toolkits.opening import AddedSource

_CANARY = "canary-of-billing-77"
BILLING = added("billing", functions=str(SERVERS / "billing.py"), env={"BILLING_KEY": _CANARY}, workers=2)


class TestFunctions(ToolSourceContract):
    @pytest.fixture
    async def source(self, tmp_path: Path) -> AsyncIterator[AddedSource]:
        async with source_of(tmp_path, BILLING) as source:
            yield source

    @pytest.fixture
    def session(self) -> Session:
        return session()

    @pytest.fixture
    def works(self) -> Works:
        return "BILLING_TOTAL", {"lines": [{"item": "a", "price": 2}]}


@pytest.fixture
async def source(tmp_path: Path) -> AsyncIterator[AddedSource]:
    async with source_of(tmp_path, BILLING) as source:
        yield source


async def test_a_function_is_described_by_its_hints_and_its_docstring(source: AddedSource) -> None:
    tools = {one.slug: one for one in await source.tools()}
    total = tools["BILLING_TOTAL"]
    assert (total.name, total.description, total.tags) == (
        "Total",
        "Sum up an invoice.\n\nMore about it.",
        ("readOnlyHint",),
    )
    assert total.input_schema["required"] == ["lines"]
    assert total.input_schema["properties"]["lines"]["description"] == "what was bought, all of it"
    assert total.input_schema["properties"]["currency"]["enum"] == ["EUR", "USD"]
    assert total.output_schema["properties"] == {"result": {"type": "number"}}
    assert list(tools["BILLING_WHOAMI"].input_schema["properties"]) == ["note"]
    assert tools["BILLING_WHOAMI"].tags == ("idempotentHint",)
    assert tools["STOCK_COUNT"].description == "How many there are."
    kits = {one.slug: one for one in await source.toolkits()}
    assert (kits["billing"].name, kits["stock"].name) == ("Billing", "Stock")


async def test_it_is_told_who_calls_and_what_is_null_counts_as_not_given(source: AddedSource) -> None:
    assert (await source.run(call("BILLING_WHOAMI"))).data == {"user": "ann", "session": "one", "note": None}
    lines = [{"item": "a", "price": 2}, {"item": "b", "price": 0.5}]
    assert (await source.run(call("BILLING_TOTAL", lines=lines, currency=None))).data == {"result": 2.5}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "`lines`: Field required"),
        ({"lines": [{"item": "a", "price": -1}]}, "`lines.0.price`: Input should be greater than or equal to 0"),
        ({"lines": [], "colour": "red"}, "`colour`: Extra inputs are not permitted"),
    ],
)
async def test_the_first_argument_that_is_wrong_is_named(
    source: AddedSource, arguments: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await source.run(call("BILLING_TOTAL", **arguments))
    assert caught.value.message == f"BILLING_TOTAL cannot use these arguments: {words}"


async def test_what_it_raises_is_told_with_the_place_and_without_ours_or_secrets(source: AddedSource) -> None:
    error = (await source.run(call("BILLING_FAILS"))).error
    line = (
        (SERVERS / "billing.py")
        .read_text(encoding="utf-8")
        .split("\n")
        .index("    raise LookupError(f\"no invoice, and the key is {os.environ['BILLING_KEY']}\")")
    )
    assert error == f"LookupError: no invoice, and the key is *** (billing.py, line {line + 1}, in _deeper)"
    assert "SystemExit: enough" in (await source.run(call("BILLING_EXITS"))).error
    assert "gives something else than it says" in (await source.run(call("BILLING_LIES"))).error


async def test_one_that_takes_too_long_is_ended_and_the_others_are_not(source: AddedSource, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    began = time.monotonic()
    slow, quick = await asyncio.gather(
        source.run(call("BILLING_SLEEPS", mark=str(mark))), source.run(call("STOCK_COUNT", item="abc"))
    )
    assert time.monotonic() - began < 15
    assert slow.error == "BILLING_SLEEPS took more than 1 s and was ended; it may have been carried out in part"
    assert quick.data == {"result": 3}
    assert not alive(int(mark.read_text(encoding="utf-8")))


async def test_one_that_ends_its_process_is_told_and_the_next_call_works(source: AddedSource) -> None:
    error = (await source.run(call("BILLING_LEAVES"))).error
    assert error == "BILLING_LEAVES ended its process; it may have been carried out in part; it said: good bye"
    assert (await source.run(call("STOCK_COUNT", item="abc"))).data == {"result": 3}


async def test_an_answer_that_is_too_large_is_told(source: AddedSource) -> None:
    assert "has more than 52,428,800 bytes" in (await source.run(call("BILLING_LARGE", size=51 * 2**20))).error
    assert (await source.run(call("STOCK_COUNT", item="abc"))).data == {"result": 3}


async def test_a_call_that_nobody_waits_for_any_more_ends_its_process(source: AddedSource, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    running = asyncio.create_task(source.run(call("BILLING_SLEEPS", mark=str(mark))))
    async with asyncio.timeout(20):
        while not mark.exists() or not mark.read_text():
            await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    eventually(lambda: not alive(int(mark.read_text())), "its process has ended")


async def test_it_runs_in_another_process_with_an_environment_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_LLM_KEY", "canary-of-the-server")
    file = tmp_path / "look.py"
    file.write_text(
        "import os\nfrom workbench.toolkits.functions import Toolkit\nkit = Toolkit()\n"
        "@kit.tool\ndef look() -> dict[str, str]:\n    return {'pid': str(os.getpid()), **os.environ}\n",
        encoding="utf-8",
    )
    async with source_of(tmp_path, added("look", functions=str(file))) as source:
        told = (await source.run(call("LOOK_LOOK"))).data
    assert int(told.pop("pid")) != os.getpid()
    assert set(told) <= {"PATH", "HOME", "LANG", "LC_CTYPE"}


async def test_a_file_that_was_changed_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "kit.py"
    begin = "from workbench.toolkits.functions import Toolkit\nkit = Toolkit()\n"
    text = begin + "@kit.tool\ndef {name}() -> int:\n    return {number}\n"
    file.write_text(text.format(name="one", number=1), encoding="utf-8")
    async with source_of(tmp_path, added("kit", functions=str(file))) as source:
        assert (await source.run(call("KIT_ONE"))).data == {"result": 1}
        file.write_text(text.format(name="second", number=22), encoding="utf-8")
        assert [one.slug for one in await source.tools()] == ["KIT_SECOND"]
        assert (await source.run(call("KIT_SECOND"))).data == {"result": 22}
        with pytest.raises(NotFound, match="KIT_ONE is no function of"):
            await source.run(call("KIT_ONE"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = (", r"SyntaxError: .* \(kit.py, line 1\)"),
        ("import no_such_library", r"ModuleNotFoundError: No module named 'no_such_library' \(kit.py, line 1"),
        ("x = 1", "it has no tools: make a `Toolkit` in it"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("{kit}@kit.tool\ndef f(a): ...", "`a` of f has no type hint"),
        ("{kit}@kit.tool\ndef f(*a: int): ...", "`a` of f cannot be told to agents"),
        (
            "{kit}@kit.tool\ndef f(): ...\n@kit.tool(name='f')\ndef g(): ...",
            "two functions of it are both called",
        ),
        ("from workbench.toolkits.functions import Toolkit\nToolkit('Bad Name')", "'Bad Name' is no name of a toolkit"),
    ],
)
async def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "kit.py"
    file.write_text(
        text.replace("{kit}", "from workbench.toolkits.functions import Toolkit\nkit = Toolkit()\n"), encoding="utf-8"
    )
    async with source_of(tmp_path, added("kit", functions=str(file))) as source:
        with pytest.raises(NotConfigured, match=words):
            await source.tools()


async def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("kit", functions=str(tmp_path / "none.py"))) as source:
        with pytest.raises(NotConfigured, match=r"none.py cannot be read: No such file"):
            await source.tools()
