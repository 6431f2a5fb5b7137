"""What was added, as it is now: in the records, in the file, changed while it is used."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.toolkits.worlds import LOOPBACK, PLAIN, SERVERS, added, call, lying

from workbench.egress.policy import AddressPolicy
from workbench.model.added import AddedToolkit, added_toolkit
from workbench.model.ids import ProjectId
from workbench.toolkits.configured import Configured
from workbench.toolkits.opening import Ground, Opener

_ONE, _OTHER = ProjectId("one"), ProjectId("other")


class House:
    """With records that a test changes."""

    def __init__(self, folder: Path) -> None:
        self.records: list[AddedToolkit] = []
        self.file = folder / "toolkits.toml"
        self.configured = Configured(
            kept=self._kept,
            opener=Opener(Ground(policy=AddressPolicy.parse(LOOPBACK), folder=folder / "homes")),
            file=self.file,
            environ={"TOKEN": "canary-token"},
        )

    async def _kept(self) -> list[AddedToolkit]:
        return list(self.records)

    async def slugs(self, project: ProjectId = _ONE) -> list[str]:
        self.configured.changed()
        return [tool.slug for source in await self.configured.sources(project) for tool in await source.tools()]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path)
    house.file.write_text("", encoding="utf-8")
    yield house
    await house.configured.aclose()


async def test_what_is_added_and_removed_is_seen_by_its_project_at_once(house: House) -> None:
    assert await house.slugs() == []
    house.records.append(added_toolkit("liar", {"command": lying("changes")}, project=_ONE))
    assert (await house.slugs(), await house.slugs(_OTHER)) == (["LIAR_GOOD"], [])
    house.records.append(added("all", command=lying("changes")))
    assert (await house.slugs(), await house.slugs(_OTHER)) == (["LIAR_GOOD", "ALL_GOOD"], ["ALL_GOOD"])
    del house.records[0]
    assert await house.slugs() == ["ALL_GOOD"]


async def test_the_file_is_read_again_when_it_changes_and_keeps_what_was_good_when_it_is_broken(house: House) -> None:
    text = f'[toolkits.liar]\ncommand = {[*lying("changes")]!r}\nenv = {{ KEY = {{ env = "TOKEN" }} }}\n'
    house.file.write_text(text.replace("'", '"'), encoding="utf-8")
    assert await house.slugs() == ["LIAR_GOOD"]
    (standing,) = await house.configured.standing(None)
    assert (standing.added.from_file, standing.added.secrets["env.KEY"].reveal()) == (True, "canary-token")
    house.file.write_text("[toolkits.liar\n", encoding="utf-8")
    assert await house.slugs() == ["LIAR_GOOD"]
    assert "toolkits.toml is no TOML" in await house.configured.problem()
    house.file.write_text("", encoding="utf-8")
    assert (await house.slugs(), await house.configured.problem()) == ([], "")


async def test_one_that_cannot_be_used_takes_nothing_from_the_others_and_says_why(house: House) -> None:
    house.records = [added("none", command=["no-such-program"]), added("liar", command=lying("one-broken"))]
    assert await house.slugs() == ["LIAR_GOOD"]
    none, liar = await house.configured.standing(None)
    assert "no-such-program cannot be started" in none.problem
    assert (liar.problem, set(liar.refused)) == ("", {"no-schema", "abroad", "???"})
    source, _ = await house.configured.sources(_ONE)
    (toolkit,) = await source.toolkits()
    assert toolkit.slug == "none"
    assert toolkit.description.startswith("It cannot be used now:")


async def test_the_same_is_told_as_the_same_value(house: House) -> None:
    house.records = [added("liar", command=lying("alike"))]
    (source,) = await house.configured.sources(_ONE)
    assert await source.tools() is await source.tools()
    assert await source.toolkits() is await source.toolkits()


async def test_one_whose_options_changed_is_started_anew_and_the_others_are_not(house: House) -> None:
    house.records = [added("plain", command=PLAIN, env={"A": "first-one"}), added("liar", command=lying("alike"))]
    before = await house.configured.sources(_ONE)
    assert (await before[0].run(call("PLAIN_ADD", a=1, b=1))).data == {"result": 2}
    house.records[0] = added("plain", command=PLAIN, env={"A": "second-one"})
    house.configured.changed()
    after = await house.configured.sources(_ONE)
    assert (after[0] is before[0], after[1] is before[1]) == (False, True)
    assert (await after[0].run(call("PLAIN_ADD", a=1, b=1))).data == {"result": 2}


async def test_a_service_is_added_by_a_discovery_document_as_by_one_of_openapi(house: House, tmp_path: Path) -> None:
    path = tmp_path / "things.json"
    method = {"id": "things.items.list", "path": "items", "httpMethod": "GET"}
    told = {"kind": "discovery#restDescription", "rootUrl": "https://things.example.com/", "servicePath": "v1/",
            "resources": {"items": {"methods": {"list": method}}}}  # fmt: skip
    path.write_text(json.dumps(told), encoding="utf-8")
    house.records.append(added("things", openapi=str(path)))
    assert await house.slugs() == ["THINGS_ITEMS_LIST"]
    path.write_text('{"info": {}}', encoding="utf-8")
    (standing,) = await house.configured.standing(None)
    assert "neither OpenAPI 3 nor a discovery document of Google's: it has no `openapi`" in standing.problem


async def test_trying_one_leaves_nothing_behind(house: House) -> None:
    tried = await house.configured.tried(added("billing", functions=str(SERVERS / "billing.py")))
    assert {one.slug for one in tried.toolkits} == {"billing", "stock"}
    assert await house.slugs() == []


async def test_many_who_ask_at_once_start_it_once(house: House) -> None:
    house.records = [added("liar", command=["/bin/sh", "-c", f"echo x >> count; exec {' '.join(lying('alike'))}"])]
    await asyncio.gather(*(house.slugs() for _ in range(20)))
    assert (house.file.parent / "homes" / "liar" / "count").read_text(encoding="utf-8") == "x\n"
