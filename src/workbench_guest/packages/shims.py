"""`npm` and `npx` inside a sandbox: installs go the way that imports go; whatever else, the machine's own does."""

from __future__ import annotations

import json
import os
import shutil
import sys

_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(_HERE)))

from workbench_guest.packages import ask  # noqa: E402

MODULES = "/node_modules"
_INSTALLS = frozenset({"install", "i", "in", "add", "ci", "install-test", "it", "clean-install"})
_REMOVES = frozenset(
    {"uninstall", "remove", "rm", "un", "update", "upgrade", "up", "dedupe", "prune", "link", "rebuild"}
)
# With a value in the next word.
_VALUED = frozenset({"--registry", "--prefix", "--tag", "--omit", "--include", "--loglevel", "-C", "--cache", "-w"})


def main(arguments: list[str]) -> int:
    """Exit code of what was asked for."""
    program, *words = arguments
    try:
        return _npx(words) if program == "npx" else _npm(words)
    except KeyboardInterrupt:
        return 130


def _npm(words: list[str]) -> int:
    command = next((word for word in words if not word.startswith("-")), "")
    if command in _REMOVES:
        return _say(f"npm {command} is not done in a sandbox: a session's packages are only added to", 1)
    if command in ("exec", "x"):
        rest = words[words.index(command) + 1 :]
        return _npx(rest[1:] if rest[:1] == ["--"] else rest)
    if command not in _INSTALLS:
        return _real("npm", words)
    named = _names(words[words.index(command) + 1 :])
    asked = named or _of_project()
    if not asked:
        return _say("up to date: there is no package.json here that asks for anything", 0)
    state, text = ask.install("node", "requirements", asked)
    if state != "ok":
        return _say(f"npm error {text or 'the workbench does not answer'}", 1)
    if "-g" in words or "--global" in words:
        text += "; for all programs of this session: there is no other place"
    sys.stdout.write(f"{text or 'up to date'}\npackages are in {MODULES}, where every program finds them\n")
    return 0


def _names(words: list[str]) -> list[str]:
    names: list[str] = []
    skip = False
    for word in words:
        if skip or word.startswith("-"):
            skip = not skip and word in _VALUED
            continue
        names.append(word)
    return names


def _of_project() -> list[str]:
    """What the package.json of this folder asks for."""
    try:
        with open("package.json", encoding="utf-8") as file:
            project = json.load(file)
    except (OSError, ValueError):
        return []
    wants = {**(project.get("devDependencies") or {}), **(project.get("dependencies") or {})}
    return [name if version in ("", "*") else f"{name}@{version}" for name, version in wants.items()]


def _npx(words: list[str]) -> int:
    package = ""
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in ("-p", "--package") and words:
            package = words.pop(0)
        elif option.startswith("--package="):
            package = option.partition("=")[2]
        elif option in ("-c", "--call"):
            return _say("npx -c is not there in a sandbox: name the program", 1)
    if not words:
        return _say("npx needs the name of a program", 1)
    wanted, *rest = words
    name = wanted.rsplit("@", 1)[0] if "@" in wanted[1:] else wanted
    if not package and (program := _program(name)):
        return _become(program, rest)
    state, text = ask.install("node", "requirements", [package or wanted])
    if state != "ok":
        return _say(f"npx error {text or 'the workbench does not answer'}", 1)
    program = _program(name)
    if not program:
        return _say(f"npx error: {package or wanted} is installed, and has no program called {name}", 1)
    return _become(program, rest)


def _program(name: str) -> str:
    """Of this folder's packages or the session's; by the package's word if it is called otherwise."""
    folders = [os.path.join(os.getcwd(), "node_modules"), MODULES]
    for folder in folders:
        found = shutil.which(os.path.join(folder, ".bin", name.rpartition("/")[2]))
        if found:
            return found
    for folder in folders:
        try:
            with open(os.path.join(folder, name, "package.json"), encoding="utf-8") as file:
                programs = json.load(file).get("bin")
        except (OSError, ValueError):
            continue
        if isinstance(programs, dict) and len(programs) == 1:
            return shutil.which(os.path.join(folder, ".bin", next(iter(programs)))) or ""
    return ""


def _real(program: str, words: list[str]) -> int:
    own = os.path.join(_HERE, "bin")
    path = os.pathsep.join(
        one for one in os.environ.get("PATH", "").split(os.pathsep) if one and os.path.realpath(one) != own
    )
    found = shutil.which(program, path=path)
    if found is None:
        return _say(f"{program} is not in this image; only `{program} install` is done, outside of it", 127)
    return _become(found, words)


def _become(program: str, words: list[str]) -> int:
    """Never comes back; the type is for those who return what a program ended with."""
    os.execv(program, [program, *words])


def _say(text: str, code: int) -> int:
    sys.stderr.write(text + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
