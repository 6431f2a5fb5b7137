"""From inside: the overlay cannot be written, linked or mounted over; and a conversation with the broker by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from tests.helpers.serving import RAW
from tests.packages.conftest import MakeSession
from tests.packages.index import Index
from tests.restart.server import Server

from workbench import Session

SITE = "/mnt/packages/python3.11"


@pytest.fixture(scope="module")
def session(index: Index, indexed: Server) -> Iterator[Session]:
    """With a package in its overlay; attacks leave no trace in it, or they were successful."""
    index.add("good", {"good/__init__.py": "x = 1\n"})
    with indexed.bench() as bench:
        made = bench.create("tester", sandbox={"snapshots": False})
        assert "Successfully" in made.run("!pip install good").stdout
        assert made.run("import good, sys").ok
        yield made
        made.delete()


@pytest.mark.parametrize(
    "attack",
    [
        "open(good.__file__, 'a')",
        "open(good.__file__, 'r+b')",
        f"open('{SITE}/new.py', 'w')",
        f"open('{SITE}/evil.pth', 'w')",
        "os.link(good.__file__, '/home/user/linked.py')",
        "os.link(good.__file__, '/mnt/files/linked.py')",
        "os.rename(good.__file__, '/mnt/packages/x')",
        "os.unlink(good.__file__)",
        f"os.rmdir('{SITE}/good')",
        "os.chmod(good.__file__, 0o777)",
        "os.utime(good.__file__)",
        "os.chown(good.__file__, 1000, 1000)",
        "os.truncate(good.__file__, 0)",
        "os.setxattr(good.__file__, 'user.x', b'1')",
        "os.symlink('/etc', '/mnt/packages/etc')",
        "os.mkdir('/mnt/packages/python3.12')",
        "os.open('/proc/self/root' + good.__file__, os.O_RDWR)",
        "open('/mnt/packages/python3.11.json', 'w')",
        "mmap.mmap(os.open(good.__file__, os.O_RDWR), 0)",
    ],
)
def test_nothing_in_the_overlay_can_be_changed(session: Session, attack: str) -> None:
    code = f"import os, mmap\ntry:\n    {attack}\n    print('DONE')\nexcept OSError as e:\n    print('refused')"
    assert session.run(code).stdout == "refused\n"
    assert session.run("print(open(good.__file__).read())").stdout == "x = 1\n\n"


def test_nobody_can_mount_it_anew_to_write_it(session: Session) -> None:
    code = (
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"print(libc.mount(None, b'{SITE}', None, 32, None), "
        f"libc.mount(b'{SITE}', b'/home/user', None, 4096, None), libc.umount2(b'/mnt/packages', 2))"
    )
    assert session.run(code).stdout == "-1 -1 -1\n"


def test_every_python_inside_has_it_last_on_its_path(session: Session) -> None:
    code = f"import sys; print(sys.path.index('{SITE}') == len(sys.path) - 1)"
    assert session.run(code).stdout == "True\n"
    assert session.run(f'!python3 -c "{code}"').stdout == "True\n"
    # And none of them takes start-up files from it.
    assert session.run("!python3 -c 'import sys; print(sys.flags.no_site)'").stdout == "0\n"


BY_HAND = {
    "no language": ({}, "no such language"),
    "another session": ({"language": "python", "requirements": ["good"], "session": "other", "mount": "m-1"}, ""),
    "a path": ({"language": "python", "requirements": ["../../etc"]}, "name with versions"),
    "an address": ({"language": "python", "requirements": ["http://127.0.0.1/x.whl"]}, "name with versions"),
    "an option": ({"language": "python", "requirements": ["--target=/"]}, "name with versions"),
    "two lines": ({"language": "python", "requirements": ["good\n--index-url x"]}, "name with versions"),
    "a module that is none": ({"language": "python", "modules": ["a/../b"]}, ""),
    "too many": ({"language": "python", "modules": ["x"] * 1000}, "at most"),
    "no list": ({"language": "python", "modules": {"x": 1}}, "list"),
    "both": ({"language": "python", "modules": ["x"], "requirements": ["y"]}, "either"),
}


def test_the_broker_by_hand_says_what_is_wrong_and_serves_its_own_session_only(session: Session) -> None:
    asked = {name: arguments for name, (arguments, _) in BY_HAND.items()}
    code = f"{RAW}\nprint({{name: ask('install', **arguments) for name, arguments in {asked!r}.items()}})"
    told = ast.literal_eval(session.run(code).stdout)
    for name, (_, words) in BY_HAND.items():
        assert words in told[name]["error"], (name, told[name])
    # A name for another session counts for nothing: what is asked for is this session's, which has it.
    assert told["another session"]["result"]["present"] == ["good==1.0"]


def test_a_flood_of_questions_is_bounded_and_costs_its_own_session(
    indexed: Server, session: Session, sessions: MakeSession
) -> None:
    code = (
        f"{RAW}\nimport collections\ntold = collections.Counter()\n"
        "for number in range(100):\n"
        "    told[ask('install', language='python', modules=[f'no_such_{number}'])['code']] += 1\n"
        "print(dict(told))"
    )
    told = ast.literal_eval(session.run(code, limit_s=60).stdout)
    assert set(told) <= {"package_refused", "rate_limited"}
    result = session.run("pass")
    assert len(result.corrections) == 0
    other = sessions(indexed)
    assert "Successfully" in other.run("!pip install good").stdout


def test_only_so_many_refusals_are_told_one_by_one(indexed: Server, sessions: MakeSession) -> None:
    asking = "for number in range(22):\n    ask('install', language='python', modules=[f'no_such_thing_{number}'])"
    # Of its own: what was asked before in another session's minute would count against its rate.
    result = sessions(indexed).run(f"{RAW}\n{asking}")
    assert (result.ok, len(result.corrections)) == (True, 20)
