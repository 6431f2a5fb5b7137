"""execute_code and execute_terminal; their siblings are in `sandbox_sessions` and `sandbox_files`."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from workbench.core import requests
from workbench.errors import InvalidRequest
from workbench.mcp import guide, receipts
from workbench.mcp.answers import Answer
from workbench.mcp.choosing import choose, in_its_language, with_its_session
from workbench.mcp.families import Family
from workbench.mcp.running import performed
from workbench.mcp.tool import Arguments, Call, Tool
from workbench.mcp.tools import sandbox_displays
from workbench.mcp.tools.sandbox_answers import (
    HINTS,
    MOST_TIMEOUT_S,
    OPTIONAL_STRING,
    SESSION_ID,
    answered,
    died_in,
    of_memory,
    refused,
)
from workbench.mcp.tools.shapes import STRING, told
from workbench.mcp.wording import explained
from workbench.model.execution import CellResult, CommandResult, Outcome, Text, with_corrections
from workbench.model.truncation import Excerpt, excerpt

# As callers of these tools know them.
_MOST_STDOUT = _MOST_RESULT = 20_000
_MOST_STDERR = 10_000
_MOST_TRACEBACK = 5_000


class CodeArguments(Arguments):
    """Of execute_code."""

    examples: ClassVar[dict[str, Any]] = {"code": "%whos"}
    session_id: str = SESSION_ID
    code: str = Field(
        description="Code for one cell, in the session's language. Earlier variables and imports are there; the last "
        "expression is `result`. `await` works at the top level in Python and Node.js, `!command` in Python."
    )
    timeout: float = Field(
        default=30,
        gt=0,
        description="Seconds until it is interrupted; at most 300.",
        json_schema_extra={"default": 30, "maximum": MOST_TIMEOUT_S},
    )


class TerminalArguments(Arguments):
    """Of execute_terminal."""

    examples: ClassVar[dict[str, Any]] = {"command": "pwd; ls -la"}
    session_id: str = SESSION_ID
    command: str = Field(description="A command line for bash; it starts in /home/user.")


async def _execute(call: Call[CodeArguments]) -> Answer:
    sent = call.arguments
    if sent.timeout > MOST_TIMEOUT_S:
        raise InvalidRequest(
            f"a timeout is at most {MOST_TIMEOUT_S} seconds, not {sent.timeout:g}: take {MOST_TIMEOUT_S}, or start "
            "what takes longer in the background with execute_terminal and `&`",
            {"argument": "timeout"},
        )
    chosen = choose(call.visit, sent.session_id)
    record = await performed(call.visit, requests.RunCell(session=chosen.id, code=sent.code, limit_s=sent.timeout))
    assert isinstance(record.result, CellResult)
    result, is_deleted = await with_its_session(call.visit, chosen.id, record.result)
    step = guide.after_result(call.visit, call.tool, chosen.told, result, sent.code)
    step = await in_its_language(call.visit, call.tool, chosen.told, step)
    structured: dict[str, Any] = {
        "success": result.outcome is Outcome.OK,
        "stdout": cut(result.stdout, _MOST_STDOUT),
        "stderr": cut(with_corrections(result), _MOST_STDERR),
        "result": cut(result.results, _MOST_RESULT) or None,
        "error": _error(result, MOST_TIMEOUT_S if sent.timeout < MOST_TIMEOUT_S else 0),
        "display_outputs": sandbox_displays.shown(result.displays),
    }
    structured |= _with_hint(result, _displays_words(result))
    return Answer(
        structured=structured,
        text={**structured, "display_outputs": sandbox_displays.written(result.displays)},
        next=guide.after_deletion(call.visit, call.tool) if is_deleted else step,
        pictures=sandbox_displays.pictures(result.displays),
        drawings=sandbox_displays.drawings(result.displays),
        meta=receipts.meta_of(result),
    )


async def _execute_terminal(call: Call[TerminalArguments]) -> Answer:
    chosen = choose(call.visit, call.arguments.session_id)
    record = await performed(call.visit, requests.RunCommand(session=chosen.id, command=call.arguments.command))
    assert isinstance(record.result, CommandResult)
    result, is_deleted = await with_its_session(call.visit, chosen.id, record.result)
    step = guide.after_result(call.visit, call.tool, chosen.told, result, call.arguments.command)
    step = await in_its_language(call.visit, call.tool, chosen.told, step)
    structured: dict[str, Any] = {
        "success": result.outcome is Outcome.OK,
        "stdout": cut(result.stdout, _MOST_STDOUT),
        "stderr": cut(with_corrections(result), _MOST_STDERR),
        "exit_code": result.exit_code,
    }
    if result.outcome is not Outcome.OK:
        structured["error"] = _error(result)
    return Answer(
        structured=structured | _with_hint(result),
        next=guide.after_deletion(call.visit, call.tool) if is_deleted else step,
        meta=receipts.meta_of(result),
    )


def cut(text: Text, most: int) -> str:
    """Head and tail, if it is long; what the core had left out already is counted as well."""
    shown = text.text
    if len(shown) <= most:
        return shown
    half = len(shown) // 2
    whole = Excerpt(most)
    whole.add(shown[:half])
    newlines = text.lines - (not shown.endswith("\n"))
    whole.skip(text.characters - len(shown), newlines - shown.count("\n"))
    whole.add(shown[half:])
    return whole.shown()


def _error(result: CellResult | CommandResult, most_s: float = 0) -> str | None:
    """`most_s` is a limit that the caller could ask for instead, if there is one."""
    match result.outcome:
        case Outcome.OK:
            return None
        case Outcome.LOST:
            return died_in(result)
        case Outcome.RAISED if isinstance(result, CommandResult):
            return f"the command exited with {result.exit_code}. {explained(result.explanation)}".strip()
    raised = result.error.traceback if isinstance(result, CellResult) and result.error is not None else ""
    if result.outcome is Outcome.RAISED:
        return excerpt(raised, _MOST_TRACEBACK)
    return f"{result.outcome.value.upper().replace(' ', '_')}: {explained(result.explanation, most_s)}"


def _with_hint(result: CellResult | CommandResult, more: str = "") -> dict[str, str]:
    said = [explained(result.explanation) if result.outcome is Outcome.LOST else of_memory(result.receipt), more]
    if result.outcome is Outcome.OK or (result.outcome is Outcome.RAISED and isinstance(result, CellResult)):
        # There is no error in which it could be said.
        said.append(explained(result.explanation))
    texts = [("stdout", result.stdout, _MOST_STDOUT), ("stderr", result.stderr, _MOST_STDERR)]
    if isinstance(result, CellResult):
        texts.append(("result", result.results, _MOST_RESULT))
    for name, text, most in texts:
        if text.file_path is not None:
            said.append(f"All of {name} is in {text.file_path}.")
        elif text.characters > most:
            less = "have less of it" if name == "result" else "print less"
            said.append(f"The middle of {name} is left out: {less}, or write it into a file.")
    hint = " ".join(one for one in said if one)
    return {"hint": hint} if hint else {}


def _displays_words(result: CellResult) -> str:
    said = []
    if result.displays_left_out:
        said.append(f"{result.displays_left_out} more outputs are in {result.displays_file_path or 'no file'}.")
    if any(one.files for one in result.displays):
        said.append(f"Large formats are in files: {result.displays_note}.")
    return " ".join(said)


CODE = Tool(
    name=guide.EXECUTE_CODE,
    family=Family.SANDBOX,
    title="Execute code",
    description=(
        "Run code in the session's kernel, in the language that create_session gave it, like a notebook cell: "
        "variables, imports and files stay for the next call; pictures come back as images.\n"
        "Use it for data, plots, several steps. For programs, archives, git, or background work use "
        "execute_terminal.\n"
        "- 30 s unless `timeout` says more, at most 300. After a time-out the code is interrupted, and variables keep "
        "what they had.\n"
        "- stdout and result are cut at 20,000 characters, stderr at 10,000, tracebacks at 5,000, in the middle.\n"
        "- `error` is the traceback: mend the code and run it again. TIMED_OUT: smaller steps, or more time. "
        "CONTAINER_DIED: the kernel or its sandbox ended; `hint` says whether variables were restored or are gone.\n"
        "- A wrong session_id runs nothing: `sessions` are those that live. `next` is the call that gets on."
    ),
    arguments=CodeArguments,
    output_schema=answered(
        {
            "stdout": told(STRING, "What the code printed."),
            "stderr": told(STRING, "What it wrote to standard error."),
            "result": told(OPTIONAL_STRING, "Text of the last expression; null if there is none."),
            "display_outputs": told(
                {"type": "array", "items": {"type": "object", "additionalProperties": STRING}},
                "What was displayed, each by mime type; images in base64 up to 200 KB of it in all, else their size.",
            ),
        }
    ),
    annotations=HINTS,
    run=_execute,
    refused=refused,
)
TERMINAL = Tool(
    name=guide.EXECUTE_TERMINAL,
    family=Family.SANDBOX,
    title="Execute terminal command",
    description=(
        "Run a bash command in the session's sandbox, beside its kernel: the same files, none of its variables.\n"
        "Use it to look at files, for programs, archives, git. Not for code: execute_code keeps its state.\n"
        "- Starts in /home/user each time, with no state but files. At most 180 s; nobody can type into it. What is "
        "started with & goes on in the background.\n"
        "- stdout is cut at 20,000 characters, stderr at 10,000, in the middle.\n"
        "- `success` false: `exit_code` is not 0, or `error` says why it was ended. CONTAINER_DIED: the sandbox ended, "
        "and what is under /mnt/files is left. A wrong session_id runs nothing; `next` is the call that gets on."
    ),
    arguments=TerminalArguments,
    output_schema=answered(
        {
            "stdout": told(STRING, "What the command printed."),
            "stderr": told(STRING, "What it wrote to standard error."),
            "exit_code": told({"type": ["integer", "null"]}, "As bash has it; null if the sandbox ended under it."),
        }
    ),
    annotations=HINTS,
    run=_execute_terminal,
    refused=refused,
)
