"""COMPOSIO_REMOTE_WORKBENCH and COMPOSIO_REMOTE_BASH_TOOL, with the inputs and outputs that their users know."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, ClassVar

import mcp_types as types
from pydantic import Field

from workbench.core import requests
from workbench.errors import InvalidRequest, NotFound, WorkbenchError
from workbench.mcp import guide, receipts
from workbench.mcp.answers import OUTCOME_KEY, Answer
from workbench.mcp.choosing import Chosen, choose, in_its_language, living, with_its_session, with_session
from workbench.mcp.families import Family
from workbench.mcp.pictures import is_picture, pictures_in
from workbench.mcp.running import performed
from workbench.mcp.tool import Arguments, Call, Tool, unused_words
from workbench.mcp.tools.shapes import STRING, WHOLE, YES_OR_NO, closed, told
from workbench.mcp.visit import Visit
from workbench.mcp.wording import explained, for_agents, goes_on, may_have_begun
from workbench.model.execution import CellResult, CommandResult, Display, Outcome, Text, with_corrections
from workbench.model.records import CellRecord, Progress
from workbench.model.runtime import PYTHON
from workbench.model.truncation import INLINE_CHARACTERS, excerpt

_HINTS = types.ToolAnnotations(destructive_hint=True, open_world_hint=True, read_only_hint=False, idempotent_hint=False)
_SUFFIX = 4
_MOST_OF_A_LINE = 500
# Of what was displayed, beside a last value that takes all the room.
_LEAST_OF_DISPLAYS = 4000
# In the context of an error: the session has another language than this tool.
_LANGUAGE = "language"
_SVG = "image/svg+xml"
_MOST_OF_AN_SVG = 2000

_SESSION = Field(
    default="",
    max_length=200,
    description="The session to use: the word from COMPOSIO_SEARCH_TOOLS, or `data.session.id` of an earlier answer. "
    "Leave it out for this connection's own session.",
)


class WorkbenchArguments(Arguments):
    """Of COMPOSIO_REMOTE_WORKBENCH."""

    examples: ClassVar[dict[str, Any]] = {"code_to_execute": "%whos"}
    ignored: ClassVar[dict[str, str]] = {"timeout": "`timeout` is not used: a cell has 180 s."}
    code_to_execute: str = Field(
        description="Python for one notebook cell. Earlier variables, imports and files are there. End with an "
        "expression or print; `await` and `!command` work at the top level, `return` does not."
    )
    thought: str = Field(default="", description="One sentence: what this cell is for.")
    session_id: str = _SESSION
    current_step: str = Field(default="", description="Name of the present step, for instance FETCHING_EMAILS.")
    current_step_metric: str = Field(default="", description='How far that step is: "10/100 emails".')


class BashArguments(Arguments):
    """Of COMPOSIO_REMOTE_BASH_TOOL."""

    examples: ClassVar[dict[str, Any]] = {"command": "pwd; ls -la"}
    command: str = Field(description="A command line for bash; it starts in /home/user.")
    session_id: str = _SESSION


_SESSION_SCHEMA = told(
    closed({"id": STRING, "instructions": told(STRING, "How to go on, and what became of the state.")},
           ["id", "instructions"]),
    "The session, to be used again.",
)  # fmt: skip
_FILE = "Where the whole is inside the sandbox, if more than is shown"
_SUFFIX_SCHEMA = told(STRING, "Last 4 characters of the sandbox's id.")


def _wrapped(data: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "data": data,
            "error": told({"type": ["string", "null"]}, "What went wrong in a line; null after a success."),
            "successful": told(YES_OR_NO, "Whether the code ran to its end without an error."),
        },
        "required": ["data", "successful"],
    }


_WORKBENCH_OUTPUT = _wrapped(
    closed(
        {
            "results": told(STRING, "Text of the last value, and of what was displayed."),
            "stdout": told(STRING, "What the code printed."),
            "stderr": told(STRING, "What it wrote to standard error."),
            "error": told(STRING, "The traceback, or why the code was ended; empty after a success."),
            "results_file_path": told(STRING, f"{_FILE} of the results."),
            "stdout_file_path": told(STRING, f"{_FILE} of stdout."),
            "stderr_file_path": told(STRING, f"{_FILE} of stderr."),
            "session": _SESSION_SCHEMA,
            "sandbox_id_suffix": _SUFFIX_SCHEMA,
        },
        ["results", "stdout", "stderr"],
    )
)
_BASH_OUTPUT = _wrapped(
    closed(
        {
            "stdout": told(STRING, "What the command printed."),
            "stdoutLines": told(WHOLE, "Lines of the whole stdout."),
            "stderr": told(STRING, "What it wrote to standard error."),
            "stderrLines": told(WHOLE, "Lines of the whole stderr."),
            "stdout_file_path": told(STRING, f"{_FILE} of stdout."),
            "stderr_file_path": told(STRING, f"{_FILE} of stderr."),
            "session": _SESSION_SCHEMA,
            "sandbox_id_suffix": _SUFFIX_SCHEMA,
        },
        ["stdout", "stdoutLines", "stderr", "stderrLines"],
    )
)


async def _run_code(call: Call[WorkbenchArguments]) -> Answer:
    sent = call.arguments
    chosen = choose(call.visit, sent.session_id)
    await _check_python(call.visit, chosen)
    progress = Progress(
        thought=sent.thought, current_step=sent.current_step, current_step_metric=sent.current_step_metric
    )

    def work() -> Awaitable[CellRecord]:
        run = requests.RunCell(session=chosen.id, code=sent.code_to_execute, progress=progress)
        return performed(call.visit, run)

    record, is_new = await with_session(call.visit, chosen, work)
    assert isinstance(record.result, CellResult)
    result, is_deleted = await with_its_session(call.visit, chosen.id, record.result)
    data: dict[str, Any] = {
        "results": _results(result),
        "stdout": result.stdout.text,
        "stderr": with_corrections(result).text,
    }
    data["error"] = _error(result)
    for name, text in (("results", result.results), ("stdout", result.stdout), ("stderr", result.stderr)):
        data |= _whole_in(name, text)
    words = receipts.in_words(result, chosen.told, is_new=is_new, is_deleted=is_deleted)
    data |= _place(call, chosen, words, record.sandbox)
    return await _answer(call, chosen, result, data, is_deleted=is_deleted, sent=sent.code_to_execute)


async def _check_python(visit: Visit, chosen: Chosen) -> None:
    """What this tool's callers write is Python, whatever the session's language."""
    try:
        runtime = await visit.bench.runtime_of(chosen.id)
    except NotFound:
        # It is made, or missed, by who runs something in it.
        return
    if runtime.name != PYTHON:
        by = f"{guide.EXECUTE_CODE}" if Family.SANDBOX in visit.families else f"a program, by {guide.BASH_TOOL}"
        raise InvalidRequest(
            f"session {chosen.told!r} is one of {runtime.title}, and this tool runs Python: run code of it with {by}, "
            "or use a session of Python",
            {"session": chosen.told, _LANGUAGE: runtime.name},
        )


async def _run_command(call: Call[BashArguments]) -> Answer:
    chosen = choose(call.visit, call.arguments.session_id)

    def work() -> Awaitable[CellRecord]:
        return performed(call.visit, requests.RunCommand(session=chosen.id, command=call.arguments.command))

    record, is_new = await with_session(call.visit, chosen, work)
    assert isinstance(record.result, CommandResult)
    result, is_deleted = await with_its_session(call.visit, chosen.id, record.result)
    data: dict[str, Any] = {
        "stdout": result.stdout.text,
        "stdoutLines": result.stdout.lines,
        "stderr": (stderr := with_corrections(result)).text,
        "stderrLines": stderr.lines,
        **_whole_in("stdout", result.stdout),
        **_whole_in("stderr", result.stderr),
    }
    words = receipts.in_words(result, chosen.told, is_new=is_new, is_deleted=is_deleted)
    data |= _place(call, chosen, words, record.sandbox)
    return await _answer(call, chosen, result, data, is_deleted=is_deleted, sent=call.arguments.command)


async def _answer(
    call: Call[Any],
    chosen: Chosen,
    result: CellResult | CommandResult,
    data: dict[str, Any],
    *,
    is_deleted: bool,
    sent: str,
) -> Answer:
    is_ok = result.outcome is Outcome.OK
    step = guide.after_result(call.visit, call.tool, chosen.told, result, sent)
    step = await in_its_language(call.visit, call.tool, chosen.told, step)
    displays = tuple(one.data for one in result.displays) if isinstance(result, CellResult) else ()
    return Answer(
        structured={"data": data, "error": None if is_ok else _in_a_line(result), "successful": is_ok},
        next=guide.after_deletion(call.visit, call.tool) if is_deleted else step,
        pictures=pictures_in(displays),
        meta=receipts.meta_of(result),
    )


def _results(result: CellResult) -> str:
    """What was displayed, in its order, and the last value. Pictures follow by themselves."""
    shown = "\n".join(text for one in result.displays if (text := _text_of(one)))
    if not shown:
        return result.results.text
    room = max(_LEAST_OF_DISPLAYS, INLINE_CHARACTERS - len(result.results.text))
    return "\n".join(text for text in (excerpt(shown, room), result.results.text) if text)


def _text_of(display: Display) -> str:
    """The plain text, but of the last value, which has its own place; the source of what has no other text and is no
    picture that is shown either.
    """
    data = display.data
    plain = "" if display.is_result else data.get("text/plain", "")
    if _SVG in data and not any(is_picture(kind) for kind in data):
        return "\n".join(text for text in (plain, excerpt(data[_SVG], _MOST_OF_AN_SVG)) if text)
    if display.is_result or "text/plain" in data or any(is_picture(kind) for kind in data):
        return plain
    return next((text for kind, text in data.items() if kind.startswith("text/")), "")


def _error(result: CellResult) -> str:
    if result.outcome is Outcome.OK:
        return ""
    raised = result.error.traceback if result.error is not None else ""
    return "\n".join(text for text in (raised, explained(result.explanation)) if text)


def _in_a_line(result: CellResult | CommandResult) -> str:
    """A command has no other place where it could be explained, so that its explanation is here, whole."""
    if result.explanation:
        said = explained(result.explanation)
        return f"{result.outcome.value}: {said if isinstance(result, CommandResult) else said.split('. ')[0]}"
    if isinstance(result, CommandResult):
        return f"the command exited with {result.exit_code}"
    if result.error is None:
        return f"the code {result.outcome.value}"
    message = result.error.message.strip().splitlines()[:1]
    return f"the code raised {': '.join([result.error.name, *message])[:_MOST_OF_A_LINE]}"


def _whole_in(name: str, text: Text) -> dict[str, str]:
    return {} if text.file_path is None else {f"{name}_file_path": text.file_path}


def _place(call: Call[Any], chosen: Chosen, words: str, sandbox: str) -> dict[str, Any]:
    words = " ".join(one for one in (words, unused_words(call.tool, call.given)) if one)
    return {"session": {"id": chosen.told, "instructions": words}, "sandbox_id_suffix": sandbox[-_SUFFIX:]}


async def _refused(visit: Visit, tool: Tool[Any], given: dict[str, Any], problem: WorkbenchError) -> Answer:
    words = for_agents(problem)
    if isinstance(problem, NotFound):
        words = f"{words}. Nothing was run or started. Living sessions: {', '.join(await living(visit)) or 'none'}"
    named = given.get("session_id")
    data: dict[str, Any] = dict.fromkeys(_required(tool), "")
    data |= {name: 0 for name in data if name.endswith("Lines")}
    session = named[:_MOST_OF_A_LINE] if isinstance(named, str) and named else visit.session
    data["session"] = {"id": session, "instructions": "Nothing ran; the state is as it was."}
    error, meta = f"not run: {words}", {}
    if may_have_begun(problem):
        error = words
        data["session"]["instructions"] = "Look at the state before you run anything again."
    if cell := goes_on(problem):
        meta = {OUTCOME_KEY: {"cell": cell}}
    step = None if guide.is_stuck(visit, problem) else guide.after_refusal(visit, tool, given, problem)
    if _LANGUAGE in problem.context:
        step = guide.look_at_files(visit, tool, session)
    return Answer(
        structured={"data": data, "error": error, "successful": False},
        next=step,
        never_began=not cell,
        meta=meta,
    )


def _required(tool: Tool[Any]) -> list[str]:
    names: list[str] = tool.output_schema["properties"]["data"]["required"]
    return names


WORKBENCH = Tool(
    name=guide.WORKBENCH_TOOL,
    family=Family.WORKBENCH,
    title="Remote Workbench",
    description=(
        "Run Python in this session's persistent notebook. Variables, imports and files stay from call to call; "
        "pictures come back as images.\n"
        "Use it for files, data, plots, many steps at once, and results too large to read. Not for what you can answer "
        "from the conversation, nor for plain shell work (COMPOSIO_REMOTE_BASH_TOOL).\n"
        "- A cell may take 180 s. Work in small cells, in parallel by ThreadPoolExecutor, and save what counts under "
        "/mnt/files, which outlives the sandbox; home is /home/user.\n"
        "- Ready as globals, each giving `(result, error)`: run_composio_tool(slug, arguments), invoke_llm(query), "
        "web_search(query), proxy_execute(method, endpoint, toolkit), upload_local_file(*paths) for a link, "
        "smart_file_extract(path) for the text of PDFs, scans and documents.\n"
        "- Long output is cut in the middle; the whole is in the file that *_file_path names.\n"
        "- `data.error` is your code's traceback: fix it and run again, earlier variables are still there. After a "
        "time-out or crash `data.session.instructions` says whether memory is intact, restored or lost.\n"
        "- `error` beginning with `not run` means that nothing ran. `next` is the call that gets on."
    ),
    arguments=WorkbenchArguments,
    output_schema=_WORKBENCH_OUTPUT,
    annotations=_HINTS,
    run=_run_code,
    refused=_refused,
)
BASH = Tool(
    name=guide.BASH_TOOL,
    family=Family.WORKBENCH,
    title="Remote Bash",
    description=(
        "Run a bash command in the same sandbox as COMPOSIO_REMOTE_WORKBENCH, beside its kernel: the same files, "
        "none of its variables.\n"
        "Use it to look at files, for archives, git, or programs. Not for Python: the notebook keeps its state.\n"
        "- Starts in /home/user each time, with no state but files. At most 180 s; nobody can type into it. What you "
        "start in the background with & goes on.\n"
        "- Long output is cut in the middle; *_file_path names the whole. stdoutLines and stderrLines count all.\n"
        "- An exit code that is not 0 is told in `error`. `error` beginning with `not run` means that nothing ran. "
        "`next` is the call that gets on."
    ),
    arguments=BashArguments,
    output_schema=_BASH_OUTPUT,
    annotations=_HINTS,
    run=_run_command,
    refused=_refused,
)
