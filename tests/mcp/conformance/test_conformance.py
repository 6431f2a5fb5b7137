"""MCP's own suite judges our HTTP door: with tools that it knows, and with ours."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.mcp.conformance.forwarder import with_key
from tests.mcp.conformance.suite import VERSIONS, Check, all_scenarios, exclusions, judged
from tests.restart.server import Server, own_settings, served

pytestmark = pytest.mark.long
# Scenarios that ask for no tool by its name, by the versions that have them.
_ANY_TOOLS = {
    "server-initialize": VERSIONS[:2],
    "server-session-lifecycle": VERSIONS[:2],
    "ping": VERSIONS[:2],
    "tools-list": VERSIONS,
    "server-sse-multiple-streams": VERSIONS[1:],
    "dns-rebinding-protection": VERSIONS[1:],
    "server-stateless": VERSIONS[2:],
    "http-header-validation": VERSIONS[2:],
    "caching": VERSIONS[2:],
}
# Of those, what asks for one after all.
_ASKS_FOR_A_TOOL = {
    "server-stateless/sep-2575-http-server-no-independent-requests-on-stream",
    "server-stateless/sep-2575-server-no-log-without-loglevel",
}


class _FixtureServer(Server):
    program = ("-m", "tests.mcp.conformance.fixture_server", "serve")


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> list[Check]:
    """Of the whole of `workbench serve`, with the suite's tools in the place of ours. The suite can send no key."""
    folder = tmp_path_factory.mktemp("judged")
    with _address_of(_FixtureServer) as address:
        return [one for version in VERSIONS for one in judged(f"{address}/mcp", version, folder / version)]


@contextlib.contextmanager
def _address_of(kind: type[Server]) -> Iterator[str]:
    # With data of its own: a server shows its key only once.
    with own_settings() as settings, served(settings, kind) as server, with_key(server.url, server.key) as address:
        yield address


def test_what_we_offer_passes_and_what_fails_is_not_offered(
    checks: list[Check], capsys: pytest.CaptureFixture[str]
) -> None:
    excluded = exclusions()
    _tell(capsys, checks, "the suite's tools")
    failed = [one for one in checks if not one.is_fine and one.name not in excluded.checks]
    assert not failed, _shown(failed)
    passed = [one for one in checks if one.is_fine and one.name in excluded.checks]
    assert not passed, f"these pass, and need not be excluded: {_shown(passed)}"
    unseen = set(excluded.checks) - {one.name for one in checks}
    assert not unseen, f"the suite has no such checks: {sorted(unseen)}"


def test_our_own_tools_pass_what_asks_for_no_tool_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    excluded = exclusions()
    checks = []
    with _address_of(Server) as address:
        for version in VERSIONS:
            scenarios = [name for name, versions in _ANY_TOOLS.items() if version in versions]
            checks += judged(f"{address}/mcp?tools=all", version, tmp_path / version, scenarios)
    _tell(capsys, checks, "our own tools")
    assert {one.scenario for one in checks} == set(_ANY_TOOLS)
    failed = [one for one in checks if not one.is_fine and one.name not in {*excluded.checks, *_ASKS_FOR_A_TOOL}]
    assert not failed, _shown(failed)


def test_every_scenario_is_run_or_excluded(checks: list[Check]) -> None:
    run = {one.scenario for one in checks}
    excluded = set(exclusions().scenarios)
    assert not run & excluded
    assert run | excluded == all_scenarios()


def _tell(capsys: pytest.CaptureFixture[str], checks: list[Check], what: str) -> None:
    good = sum(one.status == "SUCCESS" for one in checks)
    excluded = exclusions().checks
    features: dict[str, int] = {}
    for one in checks:
        if not one.is_fine:
            feature = excluded.get(one.name, "asks for a tool by its name")
            features[feature] = features.get(feature, 0) + 1
    with capsys.disabled():
        print(f"\nconformance with {what}: {good} passed, {sum(features.values())} excluded")
        for feature, count in features.items():
            print(f"  {count:3}  {feature}")


def _shown(checks: list[Check]) -> str:
    return "\n".join(f"{one.version} {one.name} {one.status}: {one.message}" for one in checks)
