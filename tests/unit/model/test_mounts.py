"""Every name of a file has its one clear answer."""

from __future__ import annotations

import pytest

from workbench.errors import InvalidRequest, NotFound
from workbench.model.mounts import MOST_PATH_BYTES, check_mount, entry_path, file_path, prefix_of

GOOD = {
    "sales.csv": "sales.csv",
    "/sales.csv": "sales.csv",
    "/etc/passwd": "etc/passwd",
    "/mnt/files/data/x": "data/x",
    "mnt/files/x": "mnt/files/x",
    "/mnt/filesx": "mnt/filesx",
    "/mnt/files/mnt/files/x": "mnt/files/x",
    "with space\tand\nlines": "with space\tand\nlines",
    "back\\slash": "back\\slash",
    "..x": "..x",
    "x..": "x..",
    "...": "...",
    ".hidden": ".hidden",
    "100%2F.txt": "100%2F.txt",
    "🎉/party.txt": "🎉/party.txt",
    "שלום/مرحبا.txt": "שלום/مرحبا.txt",
    "\u202etxt.exe": "\u202etxt.exe",
    "e\u0301": "e\u0301",
    "Report": "Report",
    "report": "report",
    "x" * 255: "x" * 255,
    "ä" * 127: "ä" * 127,
    "/".join(["x" * 199] * 20): "/".join(["x" * 199] * 20),
}
BAD = {
    "": "empty",
    "/": "empty",
    "/mnt/files": "empty",
    "/mnt/files/": "empty",
    "../x": r"the step '\.\.'",
    "a/../../x": r"the step '\.\.'",
    "/..": r"the step '\.\.'",
    "..": r"the step '\.\.'",
    "/mnt/files/../x": r"the step '\.\.'",
    "a/./b": r"the step '\.'",
    ".": r"the step '\.'",
    "./a": r"the step '\.'",
    "a//b": "two slashes",
    "//a": "two slashes",
    "/mnt/files//a": "two slashes",
    "a\0b": "NUL",
    "\0": "NUL",
    "x" * 4096: "4096 bytes",
    "x/" * 2048 + "x": "4097 bytes",
    "ä" * 2001: "4002 bytes",
    "x" * 256: "more than 255 bytes",
    "ä" * 128: "more than 255 bytes",
    "a/" + "🎉" * 64 + "/b": "more than 255 bytes",
    "half \ud800": "half a character",
}


@pytest.mark.parametrize(("text", "path"), GOOD.items())
def test_a_good_name_is_the_path_from_the_top(text: str, path: str) -> None:
    assert file_path(text) == path
    assert entry_path(text) == path
    assert file_path(path) == path or path.startswith("mnt/files"), "what was answered can be asked for"


@pytest.mark.parametrize(("text", "why"), BAD.items())
def test_a_bad_name_is_refused_with_the_reason(text: str, why: str) -> None:
    for use in (file_path, entry_path):
        with pytest.raises(InvalidRequest, match=why) as refused:
            use(text)
        (refused.value.message + refused.value.context["path"]).encode()
        assert len(refused.value.message) < 300


def test_a_slash_at_the_end_means_a_folder() -> None:
    assert entry_path("data/") == "data"
    with pytest.raises(InvalidRequest, match="ends with a slash"):
        file_path("data/")
    with pytest.raises(InvalidRequest, match="two slashes"):
        entry_path("data//")


def test_the_longest_path_is_taken_and_one_byte_more_is_not() -> None:
    longest = "/".join(["x" * 249] * 16)
    assert len(longest) == MOST_PATH_BYTES - 1
    assert file_path(longest) == longest
    with pytest.raises(InvalidRequest, match="4001 bytes"):
        file_path(longest + "xx")


@pytest.mark.parametrize(
    ("text", "prefix"),
    {
        "": "",
        "/": "",
        "/mnt/files": "",
        "/mnt/files/": "",
        "a": "a",
        "/a/": "a/",
        "a/b": "a/b",
        ".": ".",
        "a/.": "a/.",
    }.items(),
)
def test_a_prefix_is_told_from_the_top(text: str, prefix: str) -> None:
    assert prefix_of(text) == prefix


@pytest.mark.parametrize("text", ["..", "../x", "a/..", "a/../b", "a/./b", "a//b", "//", "a\0", "\ud800", "x" * 5000])
def test_with_what_no_path_begins_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="not a path in the mount"):
        prefix_of(text)


@pytest.mark.parametrize("name", ["", "file", "Files", "files/", "../files", "x" * 5000, "\ud800"])
def test_a_mount_of_another_name_is_not_found_and_the_one_there_is_is_named(name: str) -> None:
    check_mount("files")
    with pytest.raises(NotFound, match="a session has one, 'files', which code inside sees at /mnt/files") as refused:
        check_mount(name)
    (refused.value.message + refused.value.context["mount"]).encode()
