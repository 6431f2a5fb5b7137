"""Part of `testing.mount_contract`: files come whole or not at all, within the quota."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import time
from pathlib import Path

import pytest

from workbench.contracts.mounts import MountStore
from workbench.errors import Conflict, QuotaExceeded, WorkbenchError
from workbench.model.mounts import FilePath, MountFile, Quota
from workbench.testing.mount_driving import MIB, MINE, PIECE, ROOMY, OpenedMounts, names, put, read

_TIGHT = Quota(bytes=8 * MIB, files=20)
PATHS = (
    "a",
    "data/2026/in.csv",
    "with space & 100%.txt",
    "emoji 🎉.txt",
    "אבג/דהו.txt",
    "x" * 255,
    "ä" * 127,
    ".hidden",
)


class UploadsContract(OpenedMounts):
    """What is staged, and put in its place."""

    @pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:20].encode("ascii", "replace").decode())
    async def test_a_file_is_there_for_both_sides_once_it_is_committed(
        self, store: MountStore, inside: Path, path: str
    ) -> None:
        """Under its name to the letter, with its folders."""
        made = await put(store, path, b"a,b\n")
        assert (made.path, made.size) == (path, 4)
        assert (inside / path).read_bytes() == b"a,b\n"
        assert await read(store, path) == b"a,b\n"
        async with store.open(MINE, FilePath(path)) as opened:
            assert opened.file == made

    async def test_of_many_that_want_to_be_the_first_one_is(self, store: MountStore, inside: Path) -> None:
        """`may` is asked in the moment before, and the answer holds."""

        def may(there: MountFile | None) -> None:
            if there is not None:
                raise Conflict("not the first")

        async def try_to(number: int) -> bool:
            path, data = FilePath("new/first"), str(number).encode()
            async with store.stage(MINE, path, name=f"try-{number}", quota=ROOMY, size=len(data)) as staged:
                await staged.write(data)
                try:
                    await staged.commit(may)
                except Conflict:
                    await staged.discard()
                    return False
                return True

        first = [number for number, won in enumerate(await asyncio.gather(*map(try_to, range(40)))) if won]
        assert len(first) == 1
        assert (inside / "new/first").read_bytes() == str(first[0]).encode()

    async def test_one_that_may_not_replace_changes_nothing(self, store: MountStore, inside: Path) -> None:
        """It is told what is there, and what it raises comes out."""
        made = await put(store, "a", b"old")
        told = []

        def may(there: MountFile | None) -> None:
            told.append(there)
            raise ValueError("no")

        async with store.stage(MINE, FilePath("a"), name="second", quota=ROOMY) as staged:
            await staged.write(b"new")
            with pytest.raises(ValueError, match="no"):
                await staged.commit(may)
        assert told == [made]
        assert (inside / "a").read_bytes() == b"old"

    async def test_an_upload_that_is_given_up_leaves_nothing(self, store: MountStore) -> None:
        """Not even where there is no room for it any more."""
        async with store.stage(MINE, FilePath("a"), name="given-up", quota=ROOMY) as staged:
            await staged.write(b"x" * 5000)
            with pytest.raises(Conflict):
                await store.unstage(MINE, name="given-up")
        await store.remark(MINE, name="given-up", text="5000")
        await store.unstage(MINE, name="given-up")
        await store.unstage(MINE, name="given-up")
        assert await store.staged(MINE, name="given-up") == 0
        assert await store.remarked(MINE, name="given-up") == ""
        assert (await store.measure(MINE)).coming_bytes == 0

    async def test_names_that_differ_in_case_or_form_are_two(self, store: MountStore, inside: Path) -> None:
        """A name is what was sent, byte by byte."""
        twins = ("Report", "report", "e\u0301", "\u00e9")
        for one in twins:
            await put(store, one, one.encode(), name="twin")
        assert sorted(os.listdir(inside)) == sorted(twins)
        for one in twins:
            assert await read(store, one) == one.encode()

    async def test_files_of_any_size_come_as_they_were_sent(self, store: MountStore, inside: Path) -> None:
        """Empty ones as well, from any kind of bytes."""
        assert (await put(store, "empty", b"")).size == 0
        data = os.urandom(3 * MIB + 1)
        await put(store, "large", data, sized=False)
        assert (inside / "large").read_bytes() == data
        assert (inside / "empty").read_bytes() == b""
        async with store.stage(MINE, FilePath("kinds"), name="kinds", quota=ROOMY) as staged:
            for piece in (b"one", bytearray(b"two"), memoryview(b"three"), b""):
                await staged.write(piece)
            assert staged.offset == 11
            await staged.commit()
        assert await read(store, "kinds") == b"onetwothree"

    async def test_code_may_do_with_it_what_it_likes(self, store: MountStore, inside: Path) -> None:
        """It belongs to whom the mount belongs to."""
        await put(store, "data/in.csv")
        for path, mode in ((inside / "data", 0o755), (inside / "data" / "in.csv", 0o644)):
            found = path.stat()
            assert stat.S_IMODE(found.st_mode) == mode
            assert found.st_uid == os.stat(inside).st_uid

    async def test_nothing_is_seen_of_it_before(self, store: MountStore, inside: Path) -> None:
        """And what was there is there until then."""
        await put(store, "file", b"before")
        async with store.stage(MINE, FilePath("file"), name="next", quota=ROOMY) as staged:
            await staged.write(b"aft")
            assert await read(store, "file") == b"before"
            assert os.listdir(inside) == ["file"]
            await staged.write(b"er")
            await staged.commit()
        assert await read(store, "file") == b"after"
        assert await names(store) == ["file"]

    async def test_one_that_broke_off_replaces_nothing_and_goes_on_by_its_name(
        self, store: MountStore, inside: Path
    ) -> None:
        """From where it was."""
        await put(store, "file", b"before")
        with contextlib.suppress(ConnectionError):
            async with store.stage(MINE, FilePath("file"), name="broken", quota=ROOMY, size=10) as staged:
                await staged.write(b"01234")
                raise ConnectionError
        assert (inside / "file").read_bytes() == b"before"
        assert await store.staged(MINE, name="broken") == 5
        async with store.stage(MINE, FilePath("file"), name="broken", quota=ROOMY, size=10) as staged:
            assert staged.offset == 5
            await staged.write(b"56789")
            assert (await staged.commit()).size == 10
        assert (inside / "file").read_bytes() == b"0123456789"
        assert await store.staged(MINE, name="broken") == 0

    async def test_one_that_is_cancelled_at_any_moment_can_be_gone_on_with(
        self, store: MountStore, inside: Path
    ) -> None:
        """Nobody holds it any more, and what is there of it is what was sent."""
        data = os.urandom(40 * PIECE)

        async def send() -> None:
            async with store.stage(MINE, FilePath("file"), name="cut", quota=ROOMY, size=len(data)) as staged:
                while staged.offset < len(data):
                    await staged.write(data[staged.offset : staged.offset + PIECE])

        for moment in range(20):
            sending = asyncio.create_task(send())
            await asyncio.sleep(moment / 2000)
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending
        async with store.stage(MINE, FilePath("file"), name="cut", quota=ROOMY, size=len(data)) as staged:
            await staged.write(data[staged.offset :])
            await staged.commit()
        assert (inside / "file").read_bytes() == data

    async def test_what_is_discarded_is_gone(self, store: MountStore, inside: Path) -> None:
        """As often as it is said; and a file that was committed stays."""
        async with store.stage(MINE, FilePath("file"), name="one", quota=ROOMY) as staged:
            await staged.write(b"half")
            await staged.discard()
            await staged.discard()
        assert await store.staged(MINE, name="one") == 0
        async with store.stage(MINE, FilePath("file"), name="one", quota=ROOMY) as staged:
            assert staged.offset == 0
            await staged.write(b"whole")
            await staged.commit()
            await staged.discard()
        assert (inside / "file").read_bytes() == b"whole"

    async def test_one_upload_has_one_writer(self, store: MountStore) -> None:
        """And the next when that has left."""
        async with store.stage(MINE, FilePath("file"), name="one", quota=ROOMY) as staged:
            await staged.write(b"first")
            with pytest.raises(Conflict, match="another"):
                async with store.stage(MINE, FilePath("file"), name="one", quota=ROOMY):
                    pass
            assert await store.staged(MINE, name="one") == 5
        async with store.stage(MINE, FilePath("file"), name="one", quota=ROOMY) as staged:
            assert staged.offset == 5

    async def test_uploads_to_one_path_at_once_are_each_whole(self, store: MountStore, inside: Path) -> None:
        """The last that is committed stays."""
        async with (
            store.stage(MINE, FilePath("file"), name="one", quota=ROOMY) as one,
            store.stage(MINE, FilePath("file"), name="two", quota=ROOMY) as two,
        ):
            await one.write(b"1111")
            await two.write(b"22")
            await one.write(b"1111")
            await two.commit()
            assert (inside / "file").read_bytes() == b"22"
            await one.commit()
        assert (inside / "file").read_bytes() == b"11111111"

    async def test_many_uploads_to_one_path_all_come_to_their_end(self, store: MountStore, inside: Path) -> None:
        """Also more than a store has hands, and nobody else waits for them."""
        async with asyncio.timeout(60):
            uploads = [
                asyncio.ensure_future(put(store, "file", b"x" * size, name=f"one-of-{size}")) for size in range(1, 41)
            ]
            await put(store, "other")
            await asyncio.gather(*uploads)
        assert (inside / "file").stat().st_size in range(1, 41)
        assert await names(store) == ["file", "other"]

    async def test_a_file_does_not_take_the_place_of_a_folder(self, store: MountStore, inside: Path) -> None:
        """Nor goes below another file; the upload is still there, for another try."""
        (inside / "folder").mkdir()
        (inside / "file").write_bytes(b"mine")
        for path, words in (("folder", "is a folder"), ("file/below", "not a folder"), ("file/a/b", "not a folder")):
            async with store.stage(MINE, FilePath(path), name="late", quota=ROOMY) as staged:
                await staged.write(b"x")
                with pytest.raises(Conflict, match=words):
                    await staged.commit()
            assert await store.staged(MINE, name="late") > 0
        (inside / "folder").rmdir()
        async with store.stage(MINE, FilePath("folder"), name="late", quota=ROOMY) as staged:
            await staged.commit()
        assert await read(store, "folder") == b"xxx"
        assert (inside / "file").read_bytes() == b"mine"

    async def test_no_link_is_followed_to_where_it_is_put(
        self, store: MountStore, inside: Path, tmp_path: Path
    ) -> None:
        """One on the way is refused; one in its place is replaced, as is what nobody can read."""
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "file").write_bytes(b"theirs")
        (inside / "out").symlink_to(outside)
        for path in ("out/new", "out/deep/new"):
            with pytest.raises(Conflict, match="link"):
                await put(store, path)
        (inside / "link").symlink_to(outside / "file")
        os.mkfifo(inside / "fifo")
        for path in ("link", "fifo"):
            await put(store, path, b"new")
            assert stat.S_ISREG((inside / path).lstat().st_mode)
        assert os.listdir(outside) == ["file"]
        assert (outside / "file").read_bytes() == b"theirs"

    async def test_bytes_are_taken_from_a_descriptor(self, store: MountStore, inside: Path) -> None:
        """As many as it has, behind what was written; its end is told."""
        out, into = os.pipe()
        try:
            os.set_blocking(out, False)
            async with store.stage(MINE, FilePath("file"), name="piped", quota=ROOMY) as staged:
                await staged.write(b"one ")
                assert await staged.take(out, 100) == 0
                os.write(into, b"two three")
                assert await staged.take(out, 4) == 4
                assert staged.offset == 8
                await staged.write(b"and ")
                assert await staged.take(out, 100) == 5
                os.close(into)
                with pytest.raises(EOFError):
                    await staged.take(out, 100)
                await staged.commit()
        finally:
            os.close(out)
        assert (inside / "file").read_bytes() == b"one two and three"

    async def test_what_is_taken_from_a_descriptor_keeps_to_the_quota(self, store: MountStore) -> None:
        """And no upload takes more than it may."""
        source = os.open("/dev/zero", os.O_RDONLY | os.O_NONBLOCK)
        try:
            async with store.stage(MINE, FilePath("file"), name="endless", quota=_TIGHT) as staged:
                with contextlib.suppress(QuotaExceeded):
                    while staged.offset <= _TIGHT.bytes:
                        await staged.take(source, MIB)
                assert staged.offset <= _TIGHT.bytes
                await staged.discard()
        finally:
            os.close(source)

    async def test_a_line_is_kept_with_an_upload_and_outlives_it(self, store: MountStore) -> None:
        """Until the uploads of its time are dropped; it is no upload itself."""
        assert await store.remarked(MINE, name="one") == ""
        for text in ("first", "second é"):
            await store.remark(MINE, name="one", text=text)
            assert await store.remarked(MINE, name="one") == text
        assert await store.staged(MINE, name="one") == 0
        await put(store, "file", name="one")
        assert await store.remarked(MINE, name="one") == "second é"
        assert await store.drop_staged(older_than_s=3600) == 0
        assert await store.remarked(MINE, name="one") == "second é"
        await asyncio.sleep(0.05)
        assert await store.drop_staged(older_than_s=0.01) == 0
        assert await store.remarked(MINE, name="one") == ""

    async def test_lines_of_one_upload_that_are_kept_at_once_are_each_whole(self, store: MountStore) -> None:
        """And none is refused."""
        for _ in range(20):
            await asyncio.gather(*(store.remark(MINE, name="one", text=f"{number}" * 100) for number in range(8)))
            kept = await store.remarked(MINE, name="one")
            assert (len(kept), len(set(kept))) == (100, 1)

    async def test_uploads_that_nobody_came_back_to_are_dropped(self, store: MountStore) -> None:
        """Not those that are young, nor one that is being written."""
        async with store.stage(MINE, FilePath("file"), name="left", quota=ROOMY) as staged:
            await staged.write(b"half")
        assert await store.drop_staged(older_than_s=3600) == 0
        await asyncio.sleep(0.05)
        async with store.stage(MINE, FilePath("file"), name="held", quota=ROOMY) as held:
            await held.write(b"wh")
            await asyncio.sleep(0.05)
            assert await store.drop_staged(older_than_s=0.01) == 1
            await held.write(b"ole")
            await held.commit()
        assert await store.staged(MINE, name="left") == 0
        assert await read(store, "file") == b"whole"


class QuotaContract(OpenedMounts):
    """What does not fit is refused, and changes nothing."""

    async def test_a_file_that_cannot_fit_is_refused_before_it_is_sent(self, store: MountStore, inside: Path) -> None:
        """With both numbers: what is there, and what may be."""
        await put(store, "there", b"x" * 5 * MIB, quota=_TIGHT)
        with pytest.raises(QuotaExceeded, match="8,388,608") as refused:
            await put(store, "more", b"x" * 4 * MIB, quota=_TIGHT)
        assert refused.value.context["most_bytes"] == str(_TIGHT.bytes)
        assert 5 * MIB <= int(refused.value.context["held_bytes"]) < 6 * MIB
        assert os.listdir(inside) == ["there"]
        await put(store, "more", b"x" * 2 * MIB, quota=_TIGHT)

    async def test_one_of_unknown_size_is_refused_where_it_becomes_too_large(
        self, store: MountStore, inside: Path
    ) -> None:
        """And can be discarded."""
        await put(store, "there", b"before", quota=_TIGHT)
        with pytest.raises(QuotaExceeded, match="8,388,608"):
            await put(store, "there", b"x" * 9 * MIB, quota=_TIGHT, sized=False)
        assert (inside / "there").read_bytes() == b"before"
        await put(store, "there", b"x" * 6 * MIB, quota=_TIGHT)

    async def test_what_is_replaced_or_deleted_makes_room(self, store: MountStore, inside: Path) -> None:
        """By either side."""
        for byte in (b"1", b"2", b"3"):
            await put(store, "file", byte * 5 * MIB, quota=_TIGHT)
        await store.delete(MINE, FilePath("file"))
        await put(store, "other", b"x" * 6 * MIB, quota=_TIGHT)
        (inside / "other").unlink()
        await put(store, "third", b"x" * 6 * MIB, quota=_TIGHT)

    @pytest.mark.parametrize("sized", [True, False])
    async def test_of_two_at_once_that_do_not_fit_together_one_is_refused(self, store: MountStore, sized: bool) -> None:
        """And one comes through."""
        data = b"x" * 5 * MIB
        done = await asyncio.gather(
            *(put(store, name, data, quota=_TIGHT, name=name, sized=sized) for name in ("one", "two")),
            return_exceptions=True,
        )
        assert [type(one) for one in done if isinstance(one, BaseException)] == [QuotaExceeded]
        assert len(await names(store)) == 1

    async def test_many_small_ones_do_not_add_up_to_more(self, store: MountStore) -> None:
        """However fast they come."""
        refused = 0
        quota = Quota(bytes=4 * MIB, files=10_000)
        for number in range(24):
            try:
                await put(store, f"{number}", b"x" * (MIB // 4), quota=quota)
            except QuotaExceeded:
                refused += 1
        assert 8 <= refused <= 12
        assert (await store.measure(MINE)).bytes <= quota.bytes

    async def test_there_are_so_many_files_and_folders_and_no_more(self, store: MountStore) -> None:
        """A folder that has to be made counts; one that is there, and a file that is replaced, does not."""
        quota = Quota(bytes=64 * MIB, files=6)
        await put(store, "a/b/file", quota=quota)
        await put(store, "a/b/two", quota=quota)
        with pytest.raises(QuotaExceeded, match="files and folders") as refused:
            await put(store, "c/d/file", quota=quota)
        assert (refused.value.context["files"], refused.value.context["most_files"]) == ("4", "6")
        await put(store, "a/b/three", quota=quota)
        await put(store, "a/four", quota=quota)
        await put(store, "a/b/two", b"again", quota=quota)
        with pytest.raises(QuotaExceeded):
            await put(store, "five", quota=quota)
        assert (await store.measure(MINE)).files == 6

    async def test_room_that_was_kept_is_given_back(self, store: MountStore) -> None:
        """By an upload that was announced, and came to nothing."""
        for number in range(3):
            async with store.stage(
                MINE, FilePath("file"), name=f"announced-{number}", quota=_TIGHT, size=6 * MIB
            ) as staged:
                await staged.write(b"little")
        await put(store, "other", b"x" * 6 * MIB, quota=_TIGHT)

    async def test_a_refusal_leaves_nothing_staged(self, store: MountStore) -> None:
        """That would take room itself."""
        began = time.monotonic()
        for number in range(10):
            with pytest.raises(WorkbenchError):
                async with store.stage(MINE, FilePath("file"), name=f"refused-{number}", quota=_TIGHT, size=9 * MIB):
                    pass
            assert await store.staged(MINE, name=f"refused-{number}") == 0
        assert await store.drop_staged(older_than_s=time.monotonic() - began - 60) == 0
