"""Files of calls come out of the session's own mount, and those of services go into it."""

from __future__ import annotations

import pytest
from tests.unit.core.router.world import World

from workbench.core.router import files
from workbench.model.toolkit import ReturnedFile, ToolCall, ToolResult


async def test_a_file_that_arguments_name_goes_along(world: World) -> None:
    session = await world.session()
    (world.files / "one" / "out").mkdir()
    (world.files / "one" / "out" / "a.txt").write_bytes(b"hello")
    key = f"{session.mount}/out/a.txt"
    told = await world.execute(session, "APP_DO", arguments={"files": [{"name": "a.txt", "s3key": key}]})
    assert told.error == ""
    assert world.source.calls[0].files == {key: b"hello"}


@pytest.mark.parametrize(
    "key", ["two/secret.txt", "one/../two/secret.txt", "/etc/passwd", "one/", "one", "", "one/none"]
)
async def test_what_is_not_the_sessions_own_goes_nowhere(world: World, key: str) -> None:
    session = await world.session()
    await world.session(name="two")
    (world.files / "two" / "secret.txt").write_text("canary")
    told = await world.execute(session, "APP_DO", arguments={"file": {"s3key": key}})
    assert told.error
    assert world.source.calls == []


async def test_more_than_a_call_carries_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MOST_BYTES", 8)
    session = await world.session()
    for name in ("a", "b"):
        (world.files / "one" / name).write_bytes(b"12345")
    arguments = {"one": {"s3key": "one/a"}, "two": {"s3key": "one/b"}}
    assert "at most 8" in (await world.execute(session, "APP_DO", arguments=arguments)).error
    many = {"all": [{"s3key": f"one/{n}"} for n in range(21)]}
    assert "at most 20" in (await world.execute(session, "APP_DO", arguments=many)).error


async def test_a_file_that_a_service_gives_is_in_the_mount_under_a_name_that_leads_nowhere(world: World) -> None:
    async def give(call: ToolCall) -> ToolResult:
        file = ReturnedFile(name="../../etc/x y.pdf", content_type="application/pdf", content=b"%PDF")
        return ToolResult(data={"ok": True}, file=file)

    world.source._does = give
    session = await world.session()
    told = await world.execute(session, "APP_DO")
    file = told.data["file"]
    assert file["mimetype"] == "application/pdf"
    assert file["file_path"].startswith("/mnt/files/tool_files/")
    path = world.files / file["s3key"]
    assert path.read_bytes() == b"%PDF"
    assert path.parent == world.files / "one" / "tool_files"
