"""Packages and an index that mean harm, or fail: a made-up index on loopback, a real server, real sandboxes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.packages.conftest import MakeSession
from tests.packages.index import Index, yesterday
from tests.restart.server import Server

from workbench.client.values import Result


def _rules(result: Result) -> list[str]:
    return [one.rule for one in result.corrections]


@pytest.fixture(autouse=True)
def _up(index: Index) -> None:
    index.is_down, index.hangs_s = False, 0.0


def test_what_would_run_at_the_start_of_every_python_is_left_out(
    index: Index, indexed: Server, sessions: MakeSession
) -> None:
    ran = "open('/tmp/ran', 'w').write('x')"
    index.add("bad-start-up", {"bad_start_up.py": "x = 1", "zz.pth": f"import os; {ran}", "sitecustomize.py": ran})
    session = sessions(indexed)
    assert _rules(session.run("!pip install bad-start-up")) == ["install"]
    code = "!python3 -c 'import bad_start_up'\nimport os, bad_start_up\nprint(os.path.exists('/tmp/ran'))"
    assert session.run(code).stdout == "False\n"


def test_what_is_too_large_is_refused_and_not_kept(index: Index, indexed: Server, sessions: MakeSession) -> None:
    index.add("too-large", {"too_large/__init__.py": "", "too_large/data": b"\0" * (9 * 2**20)})
    session = sessions(indexed)
    refused = session.run("!pip install too-large")
    assert (_rules(refused), "weigh" in refused.stdout) == (["install-failed"], True)
    assert session.run("import os; print(os.path.exists('/mnt/packages/python3.11/too_large'))").stdout == "False\n"


def test_nothing_is_built_from_source(index: Index, indexed: Server, sessions: MakeSession) -> None:
    index.put("no-wheel", "no_wheel-1.0.tar.gz", b"not even a tar")
    refused = sessions(indexed).run("!pip install no-wheel")
    assert (_rules(refused), "no-wheel" in refused.stdout) == (["install-failed"], True)


def test_a_release_of_yesterday_is_passed_over(index: Index, indexed: Server, sessions: MakeSession) -> None:
    index.add("too-new", {"too_new.py": "version = 1"}, version="1.0")
    index.add("too-new", {"too_new.py": "version = 2"}, version="2.0", at=yesterday())
    result = sessions(indexed).run("!pip install too-new\nimport too_new\nprint(too_new.version)")
    assert result.stdout.splitlines()[-1] == "1"


def test_what_needs_another_version_of_what_is_loaded_is_refused(
    index: Index, indexed: Server, sessions: MakeSession
) -> None:
    index.add("wants-numpy", {"wants_numpy.py": ""}, needs=("numpy<2",))
    index.add("numpy", {"numpy.py": "stolen = True"}, version="1.0")
    session = sessions(indexed)
    assert _rules(session.run("!pip install wants-numpy")) == ["install-failed"]
    assert session.run("import numpy; print(hasattr(numpy, 'stolen'))").stdout == "False\n"


def test_two_versions_of_a_package_that_both_need_are_not_mixed(
    index: Index, indexed: Server, sessions: MakeSession
) -> None:
    for version in ("1.0", "2.0"):
        index.add("late", {"late.py": f"version = {version!r}"}, version=version)
    index.add("first", {"first.py": ""}, needs=("late<2",))
    index.add("second", {"second.py": ""}, needs=("late>=2",))
    session = sessions(indexed)
    assert _rules(session.run("!pip install first")) == ["install"]
    assert _rules(session.run("!pip install second")) == ["install-failed"]
    assert session.run("import late; print(late.version)").stdout == "1.0\n"


def test_packages_that_share_a_folder_are_both_there(index: Index, indexed: Server, sessions: MakeSession) -> None:
    index.add("shared-one", {"shared/one.py": "x = 1"})
    index.add("shared-two", {"shared/two.py": "x = 2"})
    session = sessions(indexed)
    assert _rules(session.run("!pip install shared-one\nimport shared.one")) == ["install"]
    assert session.run(
        "!pip install shared-two\nimport shared.two\nprint(shared.one.x + shared.two.x)"
    ).stdout.endswith("3\n")


def test_a_name_on_no_list_is_never_looked_up(index: Index, indexed: Server, sessions: MakeSession) -> None:
    index.add("squatter-zz", {"squatter_zz.py": "print('stolen')"})
    before = len(index.asked)
    session = sessions(indexed)
    for code in ("import squatter_zz", "!pip install squatter-zz", "!python3 -c 'import squatter_zz'"):
        assert _rules(session.run(code)) == ["package-not-supported"], code
    assert [path for path in index.asked[before:] if "squatter" in path] == []


def test_what_was_fetched_is_installed_while_the_index_is_down(
    index: Index, indexed: Server, sessions: MakeSession
) -> None:
    index.add("good", {"good.py": "x = 1"})
    assert _rules(sessions(indexed).run("!pip install good")) == ["install"]
    index.is_down = True
    began = time.monotonic()
    assert _rules(sessions(indexed).run("!pip install good")) == ["install"]
    session = sessions(indexed)
    refused = session.run("!pip install slow")
    assert (_rules(refused), "cannot be reached" in refused.stdout) == (["install-failed"], True)
    assert time.monotonic() - began < 60
    assert session.run("1 + 1").results == "2"


def test_an_index_that_hangs_costs_a_bounded_time_and_the_session_lives(
    index: Index, indexed: Server, sessions: MakeSession
) -> None:
    index.hangs_s = 40.0
    index.add("slow", {"slow.py": ""})
    session = sessions(indexed)
    began = time.monotonic()
    refused = session.run("!pip install slow", limit_s=60)
    assert (_rules(refused), time.monotonic() - began < 45) == (["install-failed"], True)
    assert "[sandbox] installing slow" in refused.stdout
    assert session.run("1 + 1").results == "2"


def test_a_cell_that_is_interrupted_while_it_waits_is_over_at_once(
    index: Index, indexed: Server, sessions: MakeSession
) -> None:
    index.hangs_s = 40.0
    session = sessions(indexed)
    began = time.monotonic()
    result = session.run("!pip install late", limit_s=3)
    assert (result.outcome, time.monotonic() - began < 20) == ("timed out", True)
    assert session.run("1 + 1").results == "2"


def test_what_is_fetched_is_out_of_reach_and_goes_with_nobody(
    index: Index, indexed: Server, sessions: MakeSession
) -> None:
    index.add("liar", {"liar.py": "x = 1"})
    session = sessions(indexed)
    assert _rules(session.run("!pip install liar\nimport liar")) == ["install"]
    assert "package-store" not in session.run("!find / -name package-store 2>/dev/null; true").stdout
    overlays = Path(indexed.settings.data_dir, "packages")
    assert any(overlays.iterdir())
    session.delete()
    assert not any("liar" in str(one) for one in overlays.rglob("liar*"))
