"""What code that misses a package comes to: real packages of the machine's index, real sandboxes, by REST.

Each rule has a twin that looks alike and must not be served.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.packages.conftest import MakeSession
from tests.restart.server import Server

from workbench import Session
from workbench.client.values import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One cell after another, and what the last comes to."""

    name: str
    code: str
    setup: str = ""
    error: str = ""
    stdout: str | None = None
    says: str = ""
    """somewhere in stdout"""
    installed: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


TRY = "try:\n    import {}\nexcept {}:\n    {} = None\nprint({} is None)"
CASES = (
    Case(name="module and distribution of one name", stdout="1", installed=("tabulate",),
         code="import tabulate\nprint(tabulate.tabulate([[1]], tablefmt='plain'))"),
    Case(name="another name", code="from docx import Document\nprint(callable(Document))", stdout="True",
         installed=("python-docx",)),
    Case(name="a name that belongs to somebody else", stdout="True", installed=("python-dotenv",),
         code="from dotenv import dotenv_values\nprint(callable(dotenv_values))"),
    Case(name="what ran before ran once",
         code="open('log.txt', 'a').write('x')\nimport xmltodict\nprint(len(open('log.txt').read()))",
         stdout="1", installed=("xmltodict",)),
    Case(name="in a function", code="def f():\n    import humanize\n    return humanize.intcomma(1000)\nprint(f())",
         stdout="1,000", installed=("humanize",)),
    Case(name="four threads", code=(
        "import threading\nres = []\ndef w():\n    import prettytable\n    res.append(1)\n"
        "ts = [threading.Thread(target=w) for _ in range(4)]\n[t.start() for t in ts]; [t.join() for t in ts]\n"
        "print(sum(res))"), stdout="4", installed=("prettytable",)),
    Case(name="a shared name", code="from google.cloud import storage\nprint(storage.__name__)",
         stdout="google.cloud.storage", installed=("google-cloud-storage",)),
    Case(name="two of a shared name", setup="from google.cloud import storage",
         code="from google.cloud import secretmanager\nprint(secretmanager.__name__)",
         stdout="google.cloud.secretmanager", installed=("google-cloud-secret-manager",)),
    Case(name="by importlib", code="import importlib\nprint(importlib.import_module('xmltodict').__name__)",
         stdout="xmltodict", installed=("xmltodict",)),
    Case(name="by a helper function of the agent's in a module of its own",
         setup="open('mine.py', 'w').write('import humanize\\nvalue = humanize.intcomma(1000)')",
         code="import mine\nprint(mine.value)", stdout="1,000", installed=("humanize",)),
    Case(name="by a program", code="!python3 -c 'import humanize; print(humanize.intcomma(1000))'", stdout="1,000",
         installed=("humanize",)),
    Case(name="an except that is for something else", code=TRY.format("tabulate", "ValueError", "tabulate", "tabulate"),
         stdout="False", installed=("tabulate",)),
    # Code with its own answer.
    Case(name="its own answer", code=TRY.format("pycountry", "ImportError", "pycountry", "pycountry"), stdout="True",
         hints=("optional-import",)),
    Case(name="its own answer to everything", code=TRY.format("pycountry", "Exception", "pycountry", "pycountry"),
         stdout="True", hints=("optional-import",)),
    Case(name="its own answer among others", stdout="True", hints=("optional-import",),
         code=TRY.format("pycountry", "(KeyError, ModuleNotFoundError)", "pycountry", "pycountry")),
    Case(name="suppressed", code=(
        "from contextlib import suppress\nwith suppress(ImportError):\n    import pycountry\n"
        "print('pycountry' in globals())"),
        stdout="False", hints=("optional-import",)),
    Case(name="its caller's answer", code=(
        "def load():\n    import pycountry\n    return pycountry\n"
        "try:\n    load()\nexcept ImportError:\n    print('none')"),
        stdout="none", hints=("optional-import",)),
    Case(name="its own answer, and nobody has it", stdout="True",
         code=TRY.format("no_such_thing_zz", "ImportError", "x", "x")),
    # Who only asks, and whose import it is not.
    Case(name="a probe", code="import importlib.util\nprint(importlib.util.find_spec('emoji'))", stdout="None"),
    Case(name="a library's own import", code=(
        "import pandas as pd\ntry:\n    pd.read_hdf('x.h5')\n"
        "except (ImportError, FileNotFoundError) as e:\n    print('asked')"),
        stdout="asked"),
    Case(name="a part of a package that has no such part", code="import json.nothing", error="ModuleNotFoundError"),
    Case(name="relative", code="from . import emoji", error="ImportError"),
    Case(name="a file of the agent's", setup="open('humanize.py', 'w').write('mine = 1')",
         code="import humanize\nprint(humanize.mine)", stdout="1"),
    # Names for which nothing is installed.
    Case(name="a generic name", code="import utils", error="ModuleNotFoundError", hints=("package-not-supported",)),
    Case(name="an invented name", code="import huggingface_cli", error="ModuleNotFoundError",
         hints=("package-not-supported",)),
    Case(name="a typing error", code="import reqeusts", error="ModuleNotFoundError", hints=("package-not-supported",)),
    Case(name="of another system", code="import win32com.client", error="ModuleNotFoundError",
         hints=("package-not-supported",)),
    Case(name="of another Python", code="import urllib2", error="ModuleNotFoundError",
         hints=("package-not-supported",)),
    Case(name="without a wheel", code="import dlib", error="ModuleNotFoundError", hints=("install-failed",)),
    # By name.
    Case(name="pip, unlisted", code="!pip install some-unlisted-name-zz", says="not supported",
         hints=("package-not-supported",)),
    Case(name="pip, listed", says="there", installed=("tabulate",),
         code="!pip install tabulate\nimport tabulate\nprint('there')"),
    Case(name="pip as a module", says="42", installed=("tabulate",),
         code="!python3 -m pip install -q tabulate && python3 -c 'import tabulate; print(6 * 7)'"),
    Case(name="pip as a magic", code="%pip install -U tabulate\nimport tabulate\nprint('there')", says="there",
         installed=("tabulate",)),
    Case(name="uv", code="!uv pip install tabulate", says="Successfully installed tabulate", installed=("tabulate",)),
    Case(name="a file of requirements", setup="open('r.txt', 'w').write('# ours\\ntabulate>=0.9  # tables\\n')",
         code="!pip install -r r.txt", says="Successfully installed tabulate", installed=("tabulate",)),
    Case(name="what is loaded stays", code="%pip install numpy==1.26.4", says="numpy 2.", hints=("package-conflict",)),
    Case(name="what the session has stays", setup="!pip install humanize==4.12.0", code="!pip install humanize==4.13.0",
         says="needs a new session", hints=("package-conflict",)),
    Case(name="what is there is there", code="%pip install numpy", says="already satisfied: numpy==2"),
    Case(name="pip itself", code="%pip install -U pip setuptools wheel", says="already satisfied: wheel"),
    Case(name="PyTorch is there", code="!pip install torch", says="already satisfied: torch==2"),
    Case(name="options around a name", code="!pip --no-input install -U --progress-bar off tabulate --no-color",
         says="Successfully installed tabulate", installed=("tabulate",)),
    Case(name="quietly", stdout="there", installed=("tabulate",),
         code="!pip install -qU tabulate && pip -q install numpy\nimport tabulate\nprint('there')"),
    Case(name="it needs what only the image has", installed=("torchmetrics",), stdout="True",
         code="import torchmetrics, torch\nprint('+' in torch.__version__)"),
    Case(name="a marker", code="!pip install \"tabulate; python_version >= '3.8'\" \"six; python_version < '3'\"",
         says="Ignoring six", installed=("tabulate",)),
    Case(name="what a package is called", code="import pyyaml", error="ModuleNotFoundError",
         hints=("package-not-supported",)),
    Case(name="a name of a module", code="from reqeusts import get", error="ModuleNotFoundError",
         hints=("package-not-supported",)),
    Case(name="an address", code="!pip install git+https://example.com/x.git", says="never installed from",
         hints=("package-not-supported",)),
    Case(name="a path", code="!pip install ./x", says="never installed from", hints=("package-not-supported",)),
    Case(name="an index of its own", says="not possible here",
         code="!pip install --index-url https://example.com tabulate"),
    Case(name="uninstall", code="!pip uninstall -y numpy", says="not possible here"),
    Case(name="read-only", setup="import tabulate", code="open(tabulate.__file__, 'a').write('#')", error="OSError"),
)  # fmt: skip


@pytest.fixture(scope="module")
def results(public: Server) -> dict[str, Result]:
    """Of all cases, each in a session of its own; what one fetched is there for the next."""
    told: dict[str, Result] = {}
    with public.bench() as bench:
        for case in CASES:
            session = bench.create("tester", sandbox={"snapshots": False})
            if case.setup:
                assert session.run(case.setup, limit_s=120).ok, case.name
            told[case.name] = session.run(case.code, limit_s=120)
            session.delete()
    return told


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_code_that_misses_a_package(results: dict[str, Result], case: Case) -> None:
    result = results[case.name]
    told = [(one.kind, one.rule, one.text) for one in result.corrections]
    names = [pin.partition("==")[0] for one in result.corrections for pin in one.packages]
    assert [rule for kind, rule, _ in told if kind == "hint"] == list(case.hints), told
    assert set(case.installed) <= set(names), (told, result.stdout, result.stderr)
    assert bool(names) == bool(case.installed), told
    if case.error == "OSError":
        assert result.error is not None
        assert result.error.name in ("OSError", "PermissionError"), result.error
    else:
        assert (result.error.name if result.error else "") == case.error, result.error
    assert case.stdout is None or result.stdout.strip() == case.stdout, result.stdout
    assert case.says in result.stdout


def test_an_install_has_its_packages_seconds_and_line_and_the_receipt_tells(results: dict[str, Result]) -> None:
    result = results["another name"]
    (told,) = result.corrections
    assert (told.kind, told.rule, told.line) == ("installed", "install", 1)
    assert told.packages[0].startswith("python-docx==") or any(one.startswith("python-docx==") for one in told.packages)
    assert 0 < told.seconds < 60
    assert result.receipt.installs == [told.text]


def test_a_refusal_names_the_next_step_in_the_error_itself(results: dict[str, Result]) -> None:
    result = results["a typing error"]
    assert result.error is not None
    assert "requests" in result.error.traceback
    assert "workbench_guest" not in result.error.traceback


def test_packages_are_the_sessions_and_outlive_its_kernel(public: Server, sessions: MakeSession) -> None:
    session = sessions(public)
    assert session.run("import tabulate").corrections[0].rule == "install"
    session.restart()
    again = session.run("import tabulate\nprint(1)")
    assert (again.stdout, again.corrections) == ("1\n", ())
    other = sessions(public)
    assert other.run("import os\nprint(os.path.exists('/mnt/packages/python3.11/tabulate'))").stdout == "False\n"


def test_two_sessions_with_two_versions_do_not_see_each_other(public: Server, sessions: MakeSession) -> None:
    older, newer = sessions(public), sessions(public)
    for session, version in ((older, "4.12.0"), (newer, "4.13.0")):
        assert "Successfully" in session.run(f"!pip install humanize=={version}").stdout
    seen = [_version(session) for session in (older, newer)]
    assert seen == ["4.12.0", "4.13.0"]


def _version(session: Session) -> str:
    return session.run("import humanize, importlib.metadata as m\nprint(m.version('humanize'))").stdout.strip()


def test_a_session_that_is_switched_off_gets_the_name_of_the_package(public: Server, sessions: MakeSession) -> None:
    result = sessions(public, packages="off").run("import emoji")
    assert [one.rule for one in result.corrections] == ["install-off"]
    assert "emoji" in result.corrections[0].text
    assert result.error is not None
    assert result.error.name == "ModuleNotFoundError"


def test_no_way_to_an_index_leads_out_of_a_sandbox(public: Server, sessions: MakeSession) -> None:
    code = (
        "import socket, os\nsocket.setdefaulttimeout(3)\n"
        "for host in ('pypi.org', '127.0.0.1', '1.1.1.1'):\n"
        "    for port in (80, 443, 8787):\n"
        "        try:\n            socket.create_connection((host, port)); print('OUT', host, port)\n"
        "        except OSError:\n            pass\n"
        "print(os.listdir('/sys/class/net') if os.path.exists('/sys/class/net') else 'none')"
    )
    session = sessions(public)
    assert session.run("import tabulate").corrections[0].rule == "install"
    assert "OUT" not in session.run(code).stdout
