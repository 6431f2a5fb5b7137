"""`pip`, `python -m pip`, `%pip` and `uv pip` inside a sandbox: an install is asked for outside, as an import is."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import sys
from collections.abc import Sequence

from workbench_guest.packages import asking, wanted

_NEVER = (
    "packages are installed for the whole session, read-only, by the workbench: `pip {}` is not possible here; "
    "`pip install`, `pip list`, `pip freeze` and `pip show` are"
)
# What says nothing here: where to install, how much more to print, whether to ask, and that only wheels will do.
_FLAGS = (
    "-v", "--verbose", "-U", "--upgrade", "-I", "--ignore-installed", "--force-reinstall", "-y",
    "--yes", "--user", "--system", "--pre", "--no-input", "--no-color", "--no-compile", "--no-cache-dir", "--isolated",
    "--no-build-isolation", "--disable-pip-version-check", "--break-system-packages", "--no-warn-script-location",
    "--no-warn-conflicts", "--prefer-binary",
)  # fmt: skip
_VALUED = (
    "--progress-bar", "--root-user-action", "--default-timeout", "--timeout", "--retries", "--upgrade-strategy",
    "--only-binary", "--cache-dir",
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """The exit code, as pip has it."""
    # Options may stand in front of the command as well as behind it.
    place = next((at for at, word in enumerate(arguments) if not word.startswith("-")), None)
    if place is None:
        command, rest = (arguments[0] if arguments else "help"), []
    else:
        command, rest = arguments[place], [*arguments[:place], *arguments[place + 1 :]]
    match command:
        case "install":
            return _install(rest)
        case "list" | "freeze":
            return _list(command, rest)
        case "show":
            return _show([one for one in rest if not one.startswith("-")])
        case "--version" | "-V":
            version = importlib.metadata.version("pip")
            sys.stdout.write(f"pip {version} as Open Workbench has it: installs are made outside of the sandbox\n")
            return 0
        case "check":
            said = wanted.broken()
            sys.stdout.write("".join(f"{one}\n" for one in said or ["No broken requirements found."]))
            return 1 if said else 0
    return _error(_NEVER.format(command))


def _error(why: object) -> int:
    sys.stderr.write(f"ERROR: {why}\n")
    return 1


def _reader(program: str) -> argparse.ArgumentParser:
    reader = argparse.ArgumentParser(prog=program, add_help=False, exit_on_error=False, allow_abbrev=False)
    for name in _FLAGS:
        reader.add_argument(name, action="store_true", dest="ignored")
    for name in _VALUED:
        reader.add_argument(name, dest="ignored")
    return reader


def _install(arguments: Sequence[str]) -> int:
    reader = _reader("pip install")
    reader.add_argument("-r", "--requirement", action="append", default=[])
    reader.add_argument("-q", "--quiet", action="count", default=0)
    reader.add_argument("named", nargs="*")
    try:
        # Names stand before, between and after options.
        read, unknown = reader.parse_known_intermixed_args(list(arguments))
        asked = wanted.for_this_python([*read.named, *wanted.lines_of(read.requirement)])
    except (argparse.ArgumentError, OSError, ValueError) as problem:
        return _error(problem)
    if unknown:
        return _error(f"{' '.join(unknown)}: not possible here; packages come by name from the workbench's lists")
    if not read.named and not read.requirement:
        return _error("name what to install: pip install NAME")
    # Also what no list has: the image may have more than is ever installed, such as PyTorch.
    there = wanted.already_there(asked)
    said = [f"Requirement already satisfied: {pin}\n" for pin in there.values()]
    rest = [one for one in asked if one not in there]
    code = _ask_for(rest, said) if rest else 0
    if not read.quiet:
        sys.stdout.write("".join(said))
    return code


def _ask_for(requirements: list[str], said: list[str]) -> int:
    told = asking.install({"language": "python", "requirements": requirements}, ", ".join(requirements)[:200])
    if why := told.refused or told.failed:
        return _error(why)
    said += [f"Requirement already satisfied: {pin}\n" for pin in told.result.get("present", [])]
    if installed := told.result.get("installed"):
        said.append(f"Successfully installed {' '.join(pin.replace('==', '-') for pin in installed)}\n")
    return 0


def _list(command: str, arguments: Sequence[str]) -> int:
    reader = _reader(f"pip {command}")
    reader.add_argument("--format", choices=("columns", "freeze", "json"), default="columns")
    try:
        read, unknown = reader.parse_known_args(list(arguments))
    except argparse.ArgumentError as problem:
        return _error(problem)
    if unknown:
        return _error(f"pip {command} {' '.join(unknown)}: not possible here, where nothing reaches a package index")
    found = sorted(wanted.versions().items())
    if read.format == "json":
        sys.stdout.write(json.dumps([{"name": name, "version": version} for name, version in found]) + "\n")
        return 0
    plain = command == "freeze" or read.format == "freeze"
    for name, version in found:
        sys.stdout.write(f"{name}=={version}\n" if plain else f"{name:30} {version}\n")
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
