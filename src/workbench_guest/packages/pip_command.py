"""`pip`, `python -m pip`, `%pip` and `uv pip` inside a sandbox: an install is asked for outside, as an import is."""

from __future__ import annotations

import argparse
import importlib.metadata
import re
import shlex
import sys
from collections.abc import Sequence

from workbench_guest.packages import asking

_NEVER = (
    "packages are installed for the whole session, read-only, by the workbench: `pip {}` is not possible here; "
    "`pip install`, `pip list`, `pip freeze` and `pip show` are"
)
# What says nothing here: where to install, how much to print, whether to ask.
_IGNORED = (
    "-q", "--quiet", "-qq", "-U", "--upgrade", "--user", "--no-input", "--no-cache-dir", "--disable-pip-version-check",
    "--pre", "--break-system-packages", "--no-warn-script-location", "--prefer-binary", "-y", "--yes", "--system",
    "--no-build-isolation", "--root-user-action=ignore", "--progress-bar=off", "-v", "--verbose", "--force-reinstall",
)  # fmt: skip
_NAME = re.compile(r"[-_.]+")


def main(arguments: Sequence[str]) -> int:
    """The exit code, as pip has it."""
    words = [one for one in arguments if one not in _IGNORED]
    command, rest = (words[0], words[1:]) if words else ("help", [])
    match command:
        case "install":
            return _install(rest)
        case "list" | "freeze":
            return _list(command)
        case "show":
            return _show(rest)
        case "--version" | "-V":
            version = importlib.metadata.version("pip")
            sys.stdout.write(f"pip {version} as Open Workbench has it: installs are made outside of the sandbox\n")
            return 0
        case "check":
            sys.stdout.write("No broken requirements found.\n")
            return 0
    sys.stderr.write(f"ERROR: {_NEVER.format(command)}\n")
    return 1


def _install(arguments: Sequence[str]) -> int:
    reader = argparse.ArgumentParser(prog="pip install", add_help=False, exit_on_error=False)
    reader.add_argument("-r", "--requirement", action="append", default=[])
    reader.add_argument("wanted", nargs="*")
    try:
        read, unknown = reader.parse_known_args(list(arguments))
        wanted = [*read.wanted, *(line for file in read.requirement for line in _lines(file))]
    except (argparse.ArgumentError, OSError) as problem:
        sys.stderr.write(f"ERROR: {problem}\n")
        return 1
    if unknown:
        sys.stderr.write(
            f"ERROR: {' '.join(unknown)}: not possible here; packages come by name from the workbench's lists\n"
        )
        return 1
    if not wanted:
        sys.stderr.write("ERROR: name what to install: pip install NAME\n")
        return 1
    told = asking.install({"language": "python", "requirements": wanted}, ", ".join(wanted)[:200])
    if why := told.refused or told.failed:
        sys.stderr.write(f"ERROR: {why}\n")
        return 1
    for pin in told.result.get("present", []):
        sys.stdout.write(f"Requirement already satisfied: {pin}\n")
    if installed := told.result.get("installed"):
        sys.stdout.write(f"Successfully installed {' '.join(pin.replace('==', '-') for pin in installed)}\n")
    return 0


def _lines(file: str) -> list[str]:
    with open(file, encoding="utf-8") as opened:
        lines = [line.partition(" #")[0].strip() for line in opened]
    wanted = [line for line in lines if line and not line.startswith("#")]
    for line in wanted:
        if line.startswith("-"):
            raise OSError(f"{file}: {shlex.quote(line)} is not possible here; name packages, one a line")
    return wanted


def _list(command: str) -> int:
    found = {_NAME.sub("-", one.name).lower(): one.version for one in importlib.metadata.distributions()}
    for name, version in sorted(found.items()):
        sys.stdout.write(f"{name}=={version}\n" if command == "freeze" else f"{name:30} {version}\n")
    return 0


def _show(names: Sequence[str]) -> int:
    code = 0
    for name in names:
        try:
            told = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:
            sys.stderr.write(f"WARNING: Package(s) not found: {name}\n")
            code = 1
            continue
        for field in ("Name", "Version", "Summary"):
            sys.stdout.write(f"{field}: {told[field]}\n")
    return code
