"""Runs MCP's own conformance suite against a server, and reads what it found."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

NODE_PARTS = Path(__file__).parents[2] / "node" / "node_modules"
# The newest without sessions, and those before it that have them.
VERSIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
_RUN_S = 100.0
_FINE = ("SUCCESS", "INFO")
_FOLDER = re.compile(r"server-(.+?)-\d{4}-\d\d-\d\dT")


def node_parts() -> Path:
    """Where they are. A test that has none fails: to skip it would be to judge nothing."""
    assert (NODE_PARTS / ".ready").exists(), "run scripts/install-node-parts first, as `make test-all` does"
    return NODE_PARTS


@dataclass(frozen=True, slots=True, order=True)
class Check:
    """One thing that the suite looked at."""

    scenario: str
    id: str
    version: str
    status: str
    message: str = ""

    @property
    def name(self) -> str:
        """As the file of exclusions names it."""
        return f"{self.scenario}/{self.id}"

    @property
    def is_fine(self) -> bool:
        """A warning is not, and neither is what was skipped."""
        return self.status in _FINE


@dataclass(frozen=True, slots=True)
class Exclusions:
    """What we do not offer, and which checks fail for that reason."""

    checks: dict[str, str]
    """by name: the feature"""
    scenarios: dict[str, str]
    """that are not run at all, as they are of no version of the protocol"""


def exclusions() -> Exclusions:
    """From the file."""
    features = tomllib.loads((Path(__file__).parent / "not_offered.toml").read_text(encoding="utf-8"))["feature"]
    checks = [(name, one["feature"]) for one in features for name in one.get("checks", [])]
    scenarios = [(name, one["feature"]) for one in features for name in one.get("scenarios", [])]
    assert len(dict(checks)) == len(checks), "a check is excluded twice"
    assert all(one["feature"] and one["why"] for one in features)
    return Exclusions(dict(checks), dict(scenarios))


def all_scenarios() -> set[str]:
    """Of servers, of every version and of extensions."""
    said = _suite("list", "--server")
    return set(re.findall(r"^ +- (\S+)", said, re.MULTILINE))


def judged(url: str, version: str, folder: Path, scenarios: Iterable[str] = ()) -> list[Check]:
    """Every check of these scenarios, or of all that the version has."""
    folder.mkdir()
    ways = [("--scenario", one) for one in scenarios] or [("--suite", "all")]
    for way in ways:
        _suite("server", "--url", url, "--spec-version", version, *way, "-o", str(folder))
    found = []
    for path in sorted(folder.glob("*/checks.json")):
        name = _FOLDER.match(path.parent.name)
        assert name is not None
        found += [
            Check(name[1], one["id"], version, one["status"], one.get("errorMessage") or "")
            for one in json.loads(path.read_text(encoding="utf-8"))
        ]
    assert found, f"the suite has found nothing to check at {url}"
    return found


def _suite(*arguments: str) -> str:
    """It exits with 1 if a check has failed: which may and which may not is decided here."""
    parts = node_parts()
    suite = parts / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    command = [str(parts / ".bin" / "node"), str(suite), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=_RUN_S, check=False)
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    return ran.stdout
