"""The tools that lead to others, as agents see them. Those of the sandbox come from who runs them."""

from __future__ import annotations

from typing import Any

from workbench.core.router.account_actions import ACTIONS, INITIATE
from workbench.core.router.offered import (
    GET_TOOL_SCHEMAS,
    MANAGE_CONNECTIONS,
    MULTI_EXECUTE_TOOL,
    PROXY_EXECUTE,
    REMOTE_BASH_TOOL,
    REMOTE_WORKBENCH,
    SEARCH_TOOLS,
    SUBMIT_FEEDBACK,
    WAIT_FOR_CONNECTIONS,
)
from workbench.model.toolkit import (
    META_TOOLKIT,
    MOST_KNOWN_FIELDS,
    MOST_QUERIES,
    MOST_USE_CASE,
    Json,
    Tool,
    Toolkit,
)

SANDBOX_TOOLS = frozenset({REMOTE_WORKBENCH, REMOTE_BASH_TOOL})
META_SLUGS = frozenset(
    {
        SEARCH_TOOLS,
        GET_TOOL_SCHEMAS,
        MULTI_EXECUTE_TOOL,
        MANAGE_CONNECTIONS,
        WAIT_FOR_CONNECTIONS,
        SUBMIT_FEEDBACK,
        PROXY_EXECUTE,
        *SANDBOX_TOOLS,
    }
)
META = Toolkit(
    slug=META_TOOLKIT,
    name="Composio",
    description="Tools that find and run other tools, and the sandbox of the session.",
    no_auth=True,
)

MOST_AT_ONCE = 50
_MOST_TOOLKITS, _MOST_SLUGS, _MOST_FEEDBACK = 50, 50, 2000


def _text(words: str, most: int | None = None) -> Json:
    return {"type": "string", "description": words, **({} if most is None else {"maxLength": most})}


def _flag(words: str) -> Json:
    return {"type": "boolean", "description": words}


def _list(items: Json, words: str, least: int = 0, most: int | None = None) -> Json:
    bounds = {} if most is None else {"maxItems": most}
    return {"type": "array", "items": items, "description": words, **({"minItems": least} if least else {}), **bounds}


def _object(properties: Json, required: tuple[str, ...] = (), words: str = "") -> Json:
    told: Json = {"type": "object", "properties": properties, "required": list(required)}
    return {**told, "description": words} if words else told


def _answer(properties: Json, required: tuple[str, ...]) -> Json:
    """What all of them answer, around their own."""
    return _object(
        {
            "data": _object(properties, required),
            "error": {"type": ["string", "null"], "description": "What went wrong; null after a success."},
            "successful": _flag("Whether it was done."),
        },
        ("data", "successful"),
    )


_ANY: Json = {"type": "object", "properties": {}, "additionalProperties": True}
_WORKFLOW = _text("The word from `session.id` of COMPOSIO_SEARCH_TOOLS.", 200)
_WORKFLOW_TOLD = _object({"id": _text("Pass it on."), "instructions": _text("How.")}, ("id", "instructions"))
_NUMBER: Json = {"type": "integer"}
_TEXTS = _list({"type": "string"}, "")


def _meta(slug: str, name: str, words: str, tags: tuple[str, ...], takes: Json, gives: Json) -> Tool:
    return Tool(
        slug=slug,
        name=name,
        description=words,
        toolkit=META_TOOLKIT,
        input_schema=takes,
        output_schema=gives,
        tags=tags,
        no_auth=True,
    )


_SEARCH = _meta(
    SEARCH_TOOLS,
    "Search tools",
    "Find the tools for a task. Call it first: it names tools with their schemas, says whether their apps can be used, "
    "gives the present time, and the word by which a workflow is known.\n"
    "- One query for each step of the task, in plain words, in English. Put names and ids that are known already into "
    "`known_fields`.\n"
    "- Run what it names by COMPOSIO_MULTI_EXECUTE_TOOL; where `hasFullSchema` is false, get the schema first by "
    "COMPOSIO_GET_TOOL_SCHEMAS.\n"
    "- It finds only tools that are configured here. If nothing is found, that is the answer: do not make up a slug.",
    ("readOnlyHint", "openWorldHint", "important"),
    _object(
        {
            "queries": _list(
                _object(
                    {
                        "use_case": {**_text("What is to be done, in a sentence.", MOST_USE_CASE), "minLength": 1},
                        "known_fields": _text('What is known already: "name:value, name:value".', MOST_KNOWN_FIELDS),
                    },
                    ("use_case",),
                ),
                "One for each step of the task.",
                1,
                MOST_QUERIES,
            ),
            "session": _object(
                {
                    "id": _text("The word of a workflow that goes on.", 200),
                    "generate_id": _flag("True at the beginning of a new workflow."),
                },
                words="Which workflow this belongs to.",
            ),
            "model": _text("Name of the model that asks; not used.", 200),
            "search_strategy": {
                "type": "string",
                "enum": ["auto", "tool_search"],
                "default": "auto",
                "description": "Both search the tools that there are.",
            },
        },
        ("queries",),
    ),
    _answer(
        {
            "results": _list(_ANY, "One for each query."),
            "tool_schemas": {**_ANY, "description": "Of the tools that were found, by slug."},
            "toolkit_connection_statuses": _list(_ANY, "Whether their toolkits can be used."),
            "time_info": {**_ANY, "description": "The present time."},
            "session": _object({"id": _text("A short word."), "generate_id": _flag(""), "instructions": _text("")}),
            "next_steps_guidance": _list({"type": "string"}, "What to do with it."),
        },
        ("results", "tool_schemas", "toolkit_connection_statuses", "session", "time_info", "next_steps_guidance"),
    ),
)
_SCHEMAS = _meta(
    GET_TOOL_SCHEMAS,
    "Get tool schemas",
    "What tools take and give, by their slugs. Use it before running a tool whose schema was not told in full. "
    "`seen_output` is what answers really looked like. A slug that does not exist is in `not_found`, with the nearest "
    "ones.",
    ("readOnlyHint",),
    _object(
        {
            "tool_slugs": _list({"type": "string", "maxLength": 200}, "Slugs of tools.", 1, _MOST_SLUGS),
            "include": {
                **_list({"type": "string", "enum": ["input_schema", "output_schema"]}, "Which schemas."),
                "default": ["input_schema"],
            },
            "session_id": _WORKFLOW,
        },
        ("tool_slugs",),
    ),
    _answer(
        {
            "success": _flag("Whether all were found."),
            "tool_schemas": {**_ANY, "description": "By slug."},
            "not_found": _TEXTS,
            "suggestions": {**_ANY, "description": "For each that was not found, at most 3 others."},
            "not_found_message": _text("What to do about those."),
        },
        ("success", "tool_schemas"),
    ),
)
_MANY = _meta(
    MULTI_EXECUTE_TOOL,
    "Multi-execute tools",
    "Run 1 to 50 tools at once, each by itself: one that fails stops no other. Only tools that do not need the "
    "others' answers; only slugs that COMPOSIO_SEARCH_TOOLS or COMPOSIO_GET_TOOL_SCHEMAS has told; no meta tools.\n"
    "- Where a person has to approve some of them, they are asked once for all: put such calls together.\n"
    "- `results` has one entry for each, in the order that was asked: `response.data`, or `error`.\n"
    "- With `sync_response_to_workbench`, or where answers are large, all of them are written to one JSON file in the "
    "sandbox, which `remote_file_info.file_path` names: read it there by COMPOSIO_REMOTE_WORKBENCH. A "
    "`data_preview` only says what such an answer looks like, and is no data.",
    ("destructiveHint", "openWorldHint", "important"),
    _object(
        {
            "tools": _list(
                _object(
                    {
                        "tool_slug": {**_text("Which tool.", 200), "minLength": 1},
                        "arguments": {**_ANY, "description": "What it takes."},
                        "account": _text("Which connected account, where there are several.", 200),
                    },
                    ("tool_slug",),
                ),
                "The calls.",
                1,
                MOST_AT_ONCE,
            ),
            "sync_response_to_workbench": _flag("Write the answers to a file in the sandbox as well."),
            "thought": _text("One sentence: what this is for."),
            "memory": {**_ANY, "description": "Facts to remember, by app; not used here."},
            "current_step": _text("Name of the present step."),
            "current_step_metric": _text('How far that step is: "10/100 emails".'),
            "session_id": _WORKFLOW,
        },
        ("tools", "sync_response_to_workbench"),
    ),
    _answer(
        {
            "results": _list(
                _object(
                    {
                        "tool_slug": _text(""),
                        "index": _NUMBER,
                        "response": {"type": ["object", "null"], "description": "`successful`, `data`, `log_id`."},
                        "error": {"type": ["string", "null"]},
                    },
                    ("tool_slug", "index"),
                ),
                "In the order that was asked.",
            ),
            "total_count": _NUMBER,
            "success_count": _NUMBER,
            "error_count": _NUMBER,
            "session": _WORKFLOW_TOLD,
            "remote_file_info": {**_ANY, "description": "The file with the whole answers."},
            "next_steps": _text("What to do next."),
        },
        ("results", "total_count", "success_count", "error_count"),
    ),
)
_WISH = _object(
    {
        "toolkit": {**_text("Slug of the toolkit.", 200), "minLength": 1},
        "action": {"type": "string", "enum": list(ACTIONS), "default": INITIATE, "description": "What to do."},
        "account": _text("Which account, by its id or alias; needed where there are several.", 200),
        "alias": _text("What it is to be called: a new one, or the one that is renamed.", 100),
    },
    ("toolkit",),
)
_CONNECT = _meta(
    MANAGE_CONNECTIONS,
    "Manage connections",
    "Look whether the user's accounts are connected with toolkits, and begin to connect those that are not: give each "
    "`redirect_url` to the user, who opens it in a browser. `failed` says why.\n"
    "- In the place of a slug there may be an object, to connect one more account under another `alias`, or to `list`, "
    "`rename` or `remove` accounts. Remove one only if the user said so: it is gone with its access.",
    ("destructiveHint", "openWorldHint"),
    _object(
        {
            "toolkits": _list(
                {"anyOf": [{"type": "string", "maxLength": 200}, _WISH]}, "Slugs of toolkits.", 1, _MOST_TOOLKITS
            ),
            "reinitiate_all": {**_flag("Begin anew also where there is a connection."), "default": False},
            "session_id": _WORKFLOW,
        },
        ("toolkits",),
    ),
    _answer(
        {
            "message": _text(""),
            "results": {
                **_ANY,
                "description": "By toolkit; `status` is active, initiated or failed; renamed or removed after those.",
            },
            "summary": {**_ANY, "description": "How many of each."},
            "session": _WORKFLOW_TOLD,
        },
        ("message", "results", "summary"),
    ),
)
_WAIT = _meta(
    WAIT_FOR_CONNECTIONS,
    "Wait for connections",
    "Wait until the user has connected one of these toolkits, or all: up to 50 s, then call it again. It answers at "
    "once where nothing is under way.",
    ("readOnlyHint", "idempotentHint"),
    _object(
        {
            "toolkits": _list({"type": "string", "maxLength": 200}, "Slugs of toolkits.", 1, _MOST_TOOLKITS),
            "mode": {
                "type": "string",
                "enum": ["any", "all"],
                "default": "any",
                "description": "For how many to wait.",
            },
            "session_id": _WORKFLOW,
        },
        ("toolkits",),
    ),
    _answer(
        {
            "message": _text(""),
            "results": {**_ANY, "description": "By toolkit; `status` is ACTIVE, INITIATED, FAILED or NOT_FOUND."},
            "session": _WORKFLOW_TOLD,
        },
        ("message", "results"),
    ),
)
_FEEDBACK = _meta(
    SUBMIT_FEEDBACK,
    "Submit feedback",
    "Tell who runs this workbench that a tool or an answer was not right. It is written to the audit of the project, "
    "cut to 2,000 characters, and goes nowhere else: put no secret and nothing private into it.",
    ("createHint",),
    _object(
        {
            "feedback": {**_text("What was wrong, and what was expected.", _MOST_FEEDBACK), "minLength": 1},
            "tool_slug": _text("The tool that it is about.", 200),
            "session_id": _WORKFLOW,
        },
        ("feedback",),
    ),
    _answer({"message": _text("")}, ("message",)),
)
_PROXY = _meta(
    PROXY_EXECUTE,
    "Proxy execute",
    "Ask the API of a connected app directly, for what no tool does.",
    ("destructiveHint", "openWorldHint"),
    _object(
        {
            "toolkit": {**_text("Slug of the app.", 200), "minLength": 1},
            "endpoint": {**_text("Path below the app's own address, or a whole URL of it."), "minLength": 1},
            "method": {"type": "string", "enum": ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]},
            "body": {"description": "What is sent, as JSON."},
            "query_params": _ANY,
            "headers": _ANY,
            "session_id": _WORKFLOW,
        },
        ("toolkit", "endpoint", "method"),
    ),
    _answer({"status": _NUMBER, "data": {}, "headers": _ANY}, ("status",)),
)

DESCRIBED: dict[str, Tool] = {
    tool.slug: tool for tool in (_SEARCH, _SCHEMAS, _MANY, _CONNECT, _WAIT, _FEEDBACK, _PROXY)
}
"""all but those of the sandbox"""

_WHY_OFF: dict[str, str] = {
    SEARCH_TOOLS: "`search.enable` is false",
    MULTI_EXECUTE_TOOL: "`execute.enable_multi_execute` is false",
    MANAGE_CONNECTIONS: "`manage_connections.enable` is false",
    WAIT_FOR_CONNECTIONS: "`manage_connections.enable_wait_for_connections` is not true",
    SUBMIT_FEEDBACK: "`experimental.submit_feedback.enable` is not true",
    PROXY_EXECUTE: "`proxy_execute.enable` is not true",
}


def why_off(slug: str) -> str:
    """Which part of a session's configuration leaves it out."""
    return _WHY_OFF.get(slug, "it is ruled out by its name")


def workflow(word: Any) -> Json:
    """`session` of an answer: the word that was sent, told back."""
    if not isinstance(word, str) or not word:
        return {}
    return {"session": {"id": word, "instructions": f"Pass session_id={word!r} to the next tools of this workflow."}}
