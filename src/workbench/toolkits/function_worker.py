"""Runs functions of one file, one call at a time, asked by lines of JSON. Executed by `function_source`; whatever the
functions print goes to standard error.

    python -I -m workbench.toolkits.function_worker <file> <name that it was added by>
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import inspect
import json
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import pydantic
import pydantic_core

from workbench.toolkits.functions import Caller, Function, Toolkit, input_schema, output_schema

_MOST_WORDS = 1000


def main() -> None:
    """Until standard input ends."""
    # What is said by these two, and by nothing else that runs here.
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    file, added_as = Path(sys.argv[1]), sys.argv[2]

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()

    try:
        found = _found(_loaded(file), added_as)
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - of a file that is not ours
        say({"problem": _told(problem, file)})
        return
    functions = {slug: one for slug, (one, _) in found.items()}
    say({"tools": [_described(slug, one, toolkit) for slug, (one, toolkit) in found.items()]})
    with asyncio.Runner() as runner:
        for line in asked:
            say(_answer(functions, json.loads(line), runner, file))


def _loaded(file: Path) -> ModuleType:
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(f"workbench_functions_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file: its name has to end with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _found(module: ModuleType, added_as: str) -> dict[str, tuple[Function, dict[str, str]]]:
    kits = [one for one in vars(module).values() if isinstance(one, Toolkit)]
    if not any(kit.functions for kit in kits):
        raise ValueError("it has no tools: make a `Toolkit` in it, and put `@toolkit.tool` before functions")
    found: dict[str, tuple[Function, dict[str, str]]] = {}
    for kit in dict.fromkeys(kits):
        slug = kit.slug or added_as
        told = {"slug": slug, "name": kit.name or slug.replace("_", " ").title(), "description": kit.description}
        for one in kit.functions:
            before = slug.upper()
            whole = (one.slug if one.slug.startswith(f"{before}_") else f"{before}_{one.slug}")[:60]
            if whole in found:
                raise ValueError(f"two functions of it are both called {whole}")
            found[whole] = (one, told)
    return found


def _described(slug: str, function: Function, toolkit: dict[str, str]) -> dict[str, Any]:
    return {
        "slug": slug,
        "name": function.name,
        "description": function.description,
        "toolkit": toolkit,
        "input_schema": input_schema(function),
        "output_schema": output_schema(function),
        "tags": function.tags,
        "timeout_s": function.timeout_s,
    }


def _answer(
    functions: dict[str, Function], asked: dict[str, Any], runner: asyncio.Runner, file: Path
) -> dict[str, Any]:
    function = functions[asked["slug"]]
    try:
        taken = _taken(function, asked["arguments"])
    except pydantic.ValidationError as problem:
        return {"wrong": _wrong(problem)}
    given = {name: getattr(taken, name) for name in function.arguments.model_fields}
    if function.caller:
        given[function.caller] = Caller(**asked["caller"])
    try:
        value = function.function(**given)
        if inspect.isawaitable(value):
            value = runner.run(_awaited(value))
        return {"data": _data(function, value)}
    except (Exception, SystemExit, KeyboardInterrupt) as problem:  # noqa: BLE001 - of a function that is not ours
        return {"error": _told(problem, file)}


def _taken(function: Function, arguments: dict[str, Any]) -> pydantic.BaseModel:
    try:
        return function.arguments.model_validate_json(json.dumps(arguments))
    except pydantic.ValidationError:
        # Many clients send null for what nobody filled in.
        present = {name: one for name, one in arguments.items() if one is not None}
        if len(present) == len(arguments):
            raise
        return function.arguments.model_validate_json(json.dumps(present))


async def _awaited(value: Any) -> Any:
    return await value


def _data(function: Function, value: Any) -> Any:
    if function.returns is None:
        plain = pydantic_core.to_jsonable_python(value)
    else:
        # As it was promised to agents: what it gives is checked like what it takes.
        plain = function.returns.dump_python(function.returns.validate_python(value), mode="json")
    if plain is None and function.returns is None:
        return {}
    return plain if isinstance(plain, dict) else {"result": plain}


def _wrong(problem: pydantic.ValidationError) -> str:
    first = problem.errors(include_url=False, include_input=False, include_context=False)[0]
    name = ".".join(map(str, first["loc"])) or "arguments"
    return f"`{name}`: {first['msg']}"


def _told(problem: BaseException, file: Path) -> str:
    """What was raised, and where in the file; nothing of how it was called."""
    with contextlib.suppress(Exception):
        if isinstance(problem, pydantic.ValidationError):
            return f"it gives something else than it says: {_wrong(problem)}"
    words = str(problem).strip()
    named = f"{type(problem).__name__}: {words}" if words else type(problem).__name__
    where = _place(problem.__traceback__, file)
    if isinstance(problem, SyntaxError) and problem.lineno:
        where = f" ({file.name}, line {problem.lineno})" if problem.filename == str(file) else ""
    return f"{named[:_MOST_WORDS]}{where}"


def _place(trace: TracebackType | None, file: Path) -> str:
    last = [one for one in traceback.extract_tb(trace) if one.filename == str(file)][-1:]
    return f" ({file.name}, line {last[0].lineno}, in {last[0].name})" if last else ""


if __name__ == "__main__":
    main()
