"""What a program of Node that misses a package comes to: packages of the machine's registry, real sandboxes, by REST.

Each rule has a twin that looks alike and must not be served.
"""

from __future__ import annotations

import shutil

import pytest
from tests.packages.commands import Program, check
from tests.packages.conftest import MakeSession
from tests.restart.server import Server

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or shutil.which("npm") is None, reason="no node and npm on this machine"
)

# One after the other, in one session.
PROGRAMS = (
    Program(name="a file of its own is never installed", file="a.js", code="require('./util')", ok=False,
            says=("MODULE_NOT_FOUND",)),
    Program(name="listed", file="a.js", code="console.log(require('lodash').chunk([1,2],1).length)", stdout="2",
            installed=("lodash",)),
    Program(name="there already", file="a.mjs", code="import _ from 'lodash'; console.log(_.chunk([1,2],1).length)",
            stdout="2"),
    Program(name="a part of it that does not exist", file="a.js", code="require('lodash/nothing-like-it')", ok=False,
            says=("MODULE_NOT_FOUND",)),
    Program(name="a name that looks alike", file="a.js", code="require('loadash')", ok=False,
            says=("MODULE_NOT_FOUND", "did you mean 'lodash'?"), hints=("package-not-supported",)),
    Program(name="no use without scripts", file="a.mjs", code="import 'puppeteer'", ok=False,
            says=("ERR_MODULE_NOT_FOUND", "puppeteer-core"), hints=("install-scripts-skipped",)),
    Program(name="its own answer", file="a.js", code="try { require('semver') } catch { console.log('none') }",
            stdout="none", hints=("optional-import",)),
    Program(name="a probe", file="a.js", stdout="none",
            code="try { require.resolve('semver') } catch { console.log('none') }"),
    Program(name="an import", file="a.mjs", code="import ms from 'ms'; console.log(ms('1s'))", stdout="1000",
            installed=("ms",)),
    Program(name="by name, with a version", file="a.js", code="console.log(require('ms/package.json').version)",
            command="npm install ms@2.0.0 >/dev/null && node a.js", stdout="2.0.0", installed=("ms",)),
    Program(name="by an address", file="a.js", code="", command="npm install https://example.com/x.tgz", ok=False,
            hints=("package-not-supported",)),
    Program(name="it cannot be changed from inside", file="a.js", stdout="EROFS",
            code="try { require('fs').writeFileSync('/node_modules/lodash/x', '') } catch (e) { console.log(e.code) }"),
)  # fmt: skip


@pytest.mark.timeout(300)
def test_programs_of_node_get_what_they_miss(public: Server, sessions: MakeSession) -> None:
    session = sessions(public)
    for program in PROGRAMS:
        check(session, program)


def test_what_is_off_for_a_session_is_off_for_node_too(public: Server, sessions: MakeSession) -> None:
    session = sessions(public, packages="off")
    off = ("install-off",)
    check(session, Program(name="off", file="a.js", code="require('lodash')", ok=False, says=("lodash",), hints=off))
