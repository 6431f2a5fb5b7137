"""What is known of npm's packages: which may be installed, and what somebody meant who wrote a name that may not.

The name of an import begins with the name of its package, so there is no table from one to the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from workbench.contracts.packages import refusal
from workbench.errors import PackageRefused
from workbench.model.packages import Language, PackagePolicy, PackageRule
from workbench.packages.naming import nearest, shipped
from workbench.packages.node_scripts import useless_without

# BARRIER: names and versions become arguments of npm and lines of its package.json, where a path, an address or an
# option would be obeyed; held by tests/unit/packages/test_node_lists.py.
_NAME = re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]*/)?[A-Za-z0-9~][A-Za-z0-9._~-]*")
_VERSION = re.compile(r"[0-9A-Za-z.^~<>=|*+ -]{1,80}")
_FILE = re.compile(r".*\.(?:tgz|tar|tar\.gz)", re.IGNORECASE)
_MOST_NAME = 214
"""npm's own limit"""

# Of Node 24, which has what the ones before it have.
BUILT_IN = frozenset({
    "assert", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto", "dgram",
    "diagnostics_channel", "dns", "domain", "events", "fs", "http", "http2", "https", "inspector", "module",
    "net", "os", "path", "perf_hooks", "process", "punycode", "querystring", "readline", "repl", "sea",
    "sqlite", "stream", "string_decoder", "sys", "test", "timers", "tls", "trace_events", "tty", "url", "util",
    "v8", "vm", "wasi", "worker_threads", "zlib",
})  # fmt: skip
# Of the above those that exist only with `node:` before them: without it they are names like any other.
_ONLY_WITH_PREFIX = frozenset({"sea", "sqlite", "test"})
# What people call files of their own; most of them are names on npm as well, of nothing that anybody means.
_OWN_FILES = frozenset({
    "app", "client", "common", "constants", "data", "db", "functions", "helper", "helpers", "index", "lib",
    "main", "model", "models", "module", "my-module", "my-package", "package", "routes", "script", "server",
    "settings", "src", "tests", "types", "utilities", "utils",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRequirement:
    """A package, and which versions of it."""

    name: str
    versions: str = "*"
    """as npm writes them, or a tag"""

    def __str__(self) -> str:
        return self.name if self.versions == "*" else f"{self.name}@{self.versions}"


def parsed(requirement: str) -> NodeRequirement:
    """`lodash`, `lodash@4`, `@scope/name@^1.2`.

    Raises:
        PackageRefused: it is anything else that npm would take: a path, an address, a repository, an option.
    """
    at = requirement.find("@", 1)
    name, versions = (requirement, "*") if at < 0 else (requirement[:at], requirement[at + 1 :].strip() or "*")
    if not _NAME.fullmatch(name) or len(name) > _MOST_NAME or _FILE.fullmatch(name):
        raise refusal(_not_a_name(requirement), PackageRule.NOT_SUPPORTED)
    if not _VERSION.fullmatch(versions) or _FILE.fullmatch(versions) or versions.startswith("-"):
        raise refusal(_not_a_name(requirement), PackageRule.NOT_SUPPORTED)
    return NodeRequirement(name=name, versions=versions)


def _not_a_name(requirement: str) -> str:
    return (
        f"{requirement[:100]!r} is not a name on npm with or without a version, like lodash or lodash@4: paths, "
        "addresses, repositories and options are not taken"
    )


class NodeLists:
    """Reviewed names, and the operator's own, which win."""

    language = Language.NODE

    def __init__(self, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> None:
        self._allow = frozenset(allow)
        self._deny = frozenset(deny)

    def providing(self, module: str, policy: PackagePolicy) -> str:
        """The package of `lodash/fp` is lodash. Raises: PackageRefused."""
        bare = module.removeprefix("node:").split("/")[0]
        if module.startswith("node:") or (bare in BUILT_IN and bare not in _ONLY_WITH_PREFIX):
            raise refusal(
                f"{module!r} is a module of Node's own, and this Node does not have it", PackageRule.NOT_SUPPORTED
            )
        if module.startswith((".", "/", "#")) or ":" in module:
            raise refusal(f"{module!r} is a file of your own and no package", PackageRule.NOT_SUPPORTED)
        parts = module.split("/")
        name = "/".join(parts[: 2 if module.startswith("@") else 1])
        if name in _OWN_FILES and name not in self._allow:
            raise refusal(
                f"no supported package provides {module!r}; for a file of your own write './{module}'",
                PackageRule.NOT_SUPPORTED,
            )
        if "@" in name[1:]:
            raise refusal(_not_a_name(name), PackageRule.NOT_SUPPORTED)
        return self.admitted(name, policy)

    def admitted(self, distribution: str, policy: PackagePolicy) -> str:
        """The name, with the versions if some were asked for. Raises: PackageRefused."""
        asked = parsed(distribution)
        if policy is PackagePolicy.OFF:
            raise refusal("packages are not installed here", PackageRule.OFF)
        if asked.name in self._deny:
            raise refusal(f"{asked.name} is not allowed by the operator of this workbench", PackageRule.NOT_SUPPORTED)
        if asked.name in self._allow:
            return str(asked)
        if why := useless_without(asked.name):
            raise refusal(why, PackageRule.SCRIPTS_SKIPPED)
        if policy is not PackagePolicy.ANY and asked.name not in _listed(policy):
            raise self._unknown(asked.name, policy)
        return str(asked)

    def _unknown(self, name: str, policy: PackagePolicy) -> PackageRefused:
        meant = nearest(name, _listed(PackagePolicy.SUPPORTED) | self._allow) or nearest(name, _listed(policy))
        # One that is of no use is not what anybody should go on with.
        offer = f"; did you mean {meant!r}?" if meant and meant not in self._deny and not useless_without(meant) else ""
        return refusal(f"no supported package is called {name!r}{offer}", PackageRule.NOT_SUPPORTED)


def _listed(policy: PackagePolicy) -> frozenset[str]:
    supported = shipped("node_supported.txt")
    return supported if policy is PackagePolicy.SUPPORTED else supported | shipped("node_popular.txt")
