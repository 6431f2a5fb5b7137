"""What users of the official Python SDK do, one after the other, against the server that the environment names.

Run by the interpreter of an SDK's own environment, as a user would: nothing here knows of our server.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import composio as sdk
from composio import Composio
from composio.core.provider import AgenticProvider
from openai.types.chat import ChatCompletionMessageToolCall
from pydantic import BaseModel, Field
from tests.composio_sdks.python.facts import Facts

WORKBENCH, BASH = "COMPOSIO_REMOTE_WORKBENCH", "COMPOSIO_REMOTE_BASH_TOOL"
NEWEST = hasattr(sdk.core.models.tool_router_session.ToolRouterSession, "execute_meta")


class Pattern(BaseModel):
    """What the custom tool is called with."""

    pattern: str = Field(description="p")


class Callables(AgenticProvider, name="callables"):  # type: ignore[misc,call-arg]
    """The simplest framework of agents: a tool is a function."""

    def wrap_tools(self, tools: Any, execute_tool: Any) -> dict[str, Any]:
        """By their names."""
        return {tool.slug: functools.partial(execute_tool, tool.slug) for tool in tools}


def seen(session: Any) -> dict[str, Any]:
    """Of a session, as its user sees it."""
    names = ("session_id", "mcp", "preload", "config", "config_version", "warnings", "sandbox", "workbench")
    return {name: getattr(session, name, None) for name in names} | {
        "prompt": getattr(session.experimental, "assistive_prompt", None)
    }


def sessions(composio: Any, facts: Facts) -> None:
    """Created in every way, found again, changed, deleted."""
    new = composio.create
    facts.of("create", lambda: new(user_id="user_123"), seen)
    facts.of(
        "create with everything of a sandbox",
        lambda: new(
            user_id="user_123",
            toolkits=["github", "gmail"],
            sandbox={
                "enable": True,
                "enable_proxy_execution": False,
                "auto_offload_threshold": 300,
                "sandbox_size": "large",
            },
        ),
        seen,
    )
    off = facts.of(
        "create without a sandbox",
        lambda: new(user_id="user_123", toolkits=["github"], workbench={"enable": False}),
        seen,
    )
    facts.of("tools without a sandbox", lambda: [one["function"]["name"] for one in off.tools()])
    facts.refusal("workbench without a sandbox", lambda: off.execute(WORKBENCH, arguments={"code_to_execute": "1"}))
    facts.of("create xlarge", lambda: new(user_id="user_123", sandbox={"sandbox_size": "xlarge"}), seen)
    facts.of("create with an empty block", lambda: new(user_id="user_123", sandbox={}), seen)
    facts.refusal("create with a size of nobody", lambda: new(user_id="user_123", sandbox={"sandbox_size": "huge"}))
    newer: dict[str, Any] = {"instant": False, "proxy_execute": True} if NEWEST else {}
    facts.of(
        "create with everything else",
        lambda: new(
            user_id="u2",
            toolkits={"disable": ["linear"]},
            tools={
                "gmail": ["GMAIL_SEND_EMAIL"],
                "github": {"disable": ["GITHUB_X"]},
                "slack": {"tags": ["readOnlyHint"]},
            },
            tags={"enable": ["readOnlyHint"], "disable": ["destructiveHint"]},
            auth_configs={"github": "ac_1"},
            connected_accounts={"github": "ca_1"},
            manage_connections={"enable": True, "callback_url": "https://cb", "wait_for_connections": True},
            multi_account={"enable": True},
            preload={"tools": ["GITHUB_X"]},
            experimental={"assistive_prompt": {"user_timezone": "Europe/London"}},
            **newer,
        ),
        seen,
    )
    direct = facts.of(
        "create of direct tools",
        lambda: new(user_id="u3", toolkits=["github"], session_preset="direct_tools"),
        seen,
    )
    facts.of("direct tools", lambda: [one["function"]["name"] for one in direct.tools()])
    facts.refusal("create by position", lambda: new("user_123"))


def changes(composio: Any, facts: Facts) -> None:
    """Of one session: its size, with the memory that it had; a version that is not the current one; the history."""
    session = composio.create(user_id="user_123")
    session.execute(WORKBENCH, arguments={"code_to_execute": "kept = 41"})
    facts.of("update", lambda: session.update(sandbox={"sandbox_size": "medium"}), lambda _: seen(session))
    facts.of("after the update", lambda: session.execute(WORKBENCH, arguments={"code_to_execute": "kept + 1"}))
    if NEWEST:
        facts.refusal(
            "update of an old version",
            lambda: session.update(toolkits={"enable": ["github"]}, expected_config_version=99),
        )
        facts.of("history", lambda: session.list_config_history(limit=10))
    facts.of("use", lambda: composio.use(session.session_id), seen)
    facts.refusal("use of nobody", lambda: composio.use("trs_nope"))
    facts.of("delete", session.delete)
    facts.refusal("execute after delete", lambda: session.execute("X"))
    facts.refusal("delete again", lambda: composio.sessions.delete(session.session_id))


def approvals(composio: Any, facts: Facts) -> None:
    """A tool that a person is asked about, and what they say."""
    session = composio.create(user_id="user_123", toolkits={"require_approval": ["composio_search"]})
    slug, given = "COMPOSIO_SEARCH_GROQ_CHAT", {"messages": [{"role": "user", "content": "say:yes"}]}
    facts.refusal("execute that is asked about", lambda: session.execute(slug, arguments=given))

    def answered(action: str) -> Any:
        try:
            return session.execute(slug, arguments=given)
        except sdk.exceptions.ToolInputRequiredError as asked:
            responses = {name: {"action": action} for name in asked.input_requests}
            return session.execute(slug, arguments=given, input_responses=responses, request_state=asked.request_state)

    facts.of("execute that was allowed", lambda: answered("accept"))
    facts.of("execute that was not allowed", lambda: answered("decline"))


def calls(composio: Any, facts: Facts) -> None:
    """Tools, found and called."""
    session = composio.create(user_id="user_123")
    facts.of("tools", session.tools)
    facts.of("search", lambda: session.search(query="get a pull request", model="gpt-5"))
    facts.of("search for a model", lambda: session.search(query="ask a language model"))
    pull = {"owner": "composiohq", "repo": "composio", "pull_number": 1}
    facts.refusal("execute of an app", lambda: session.execute("GITHUB_GET_A_PULL_REQUEST", arguments=pull))
    facts.refusal("execute without arguments", lambda: session.execute("HACKERNEWS_GET_TOP"))
    facts.refusal("execute with an account", lambda: session.execute("GITHUB_X", arguments={}, account="ca_1"))
    facts.of("workbench", lambda: session.execute(WORKBENCH, arguments={"code_to_execute": "x = 1\n1+1"}))
    facts.of("workbench again", lambda: session.execute(WORKBENCH, arguments={"code_to_execute": "print(x)"}))
    facts.of("workbench raises", lambda: session.execute(WORKBENCH, arguments={"code_to_execute": "1/0"}))
    facts.refusal("workbench without code", lambda: session.execute(WORKBENCH, arguments={}))
    facts.of("bash", lambda: session.execute(BASH, arguments={"command": "echo hi; pwd"}))
    many = {
        "tools": [
            {
                "tool_slug": "COMPOSIO_SEARCH_GROQ_CHAT",
                "arguments": {"messages": [{"role": "user", "content": "say:yes"}]},
            },
            {"tool_slug": "GITHUB_X", "arguments": {}},
        ],
        "sync_response_to_workbench": False,
    }
    facts.of("multi execute", lambda: session.execute("COMPOSIO_MULTI_EXECUTE_TOOL", arguments=many))
    facts.of(
        "schemas",
        lambda: session.execute(
            "COMPOSIO_GET_TOOL_SCHEMAS", arguments={"tool_slugs": ["COMPOSIO_SEARCH_EXA_ANSWER", "NO_SUCH"]}
        ),
    )
    facts.of("connections", lambda: session.execute("COMPOSIO_MANAGE_CONNECTIONS", arguments={"toolkits": ["github"]}))
    if NEWEST:
        facts.of(
            "execute meta",
            lambda: session.execute_meta("COMPOSIO_SEARCH_TOOLS", arguments={"queries": [{"use_case": "x"}]}),
        )
    facts.of(
        "toolkits",
        lambda: session.toolkits(limit=2, toolkits=["github", "hackernews"], is_connected=True, search="g"),
    )
    facts.of("all toolkits", session.toolkits)
    facts.of(
        "authorize",
        lambda: session.authorize("github", alias="work", callback_url="https://cb"),
        lambda begun: {"id": begun.id, "redirect_url": begun.redirect_url},
    )
    facts.refusal("account of nobody", lambda: composio.connected_accounts.get("ca_9"))
    facts.refusal(
        "proxy",
        lambda: session.proxy_execute(
            toolkit="github",
            endpoint="/user",
            method="GET",
            parameters=[
                {"name": "per_page", "in": "query", "value": 1},
                {"name": "Accept", "in": "header", "value": "application/json"},
            ],
        ),
    )
    facts.refusal(
        "proxy with a body",
        lambda: session.proxy_execute(
            toolkit="github", endpoint="https://api.github.com/x", method="POST", body={"a": 1}
        ),
    )
    provider(composio, session, facts)


def provider(composio: Any, session: Any, facts: Facts) -> None:
    """What the default provider does with a model's call: it names a user and no session."""
    call = ChatCompletionMessageToolCall(
        id="call_1", type="function", function={"name": WORKBENCH, "arguments": '{"code_to_execute": "6*7"}'}
    )
    facts.refusal("provider", lambda: composio.provider.execute_tool_call(user_id="user_123", tool_call=call))
    if NEWEST:
        facts.of("provider of a session", lambda: composio.provider.execute_tool_call(session=session, tool_call=call))


def custom_tools(composio: Any, facts: Facts) -> None:
    """A tool of the user's own process: the server only names it."""

    def search(given: Pattern, context: Any) -> dict[str, Any]:
        return {"matches": [given.pattern]}

    grep = composio.experimental.tool(slug="GREP", name="Grep", description="Search files")(search)
    session = facts.of(
        "create with a custom tool",
        lambda: composio.create(user_id="u4", experimental={"custom_tools": [grep]}),
        lambda made: [vars(one) if hasattr(one, "__dict__") else one for one in made.custom_tools()],
    )
    facts.of("custom tool", lambda: session.execute("GREP", arguments={"pattern": "needle"}))
    facts.of("custom tool by its whole name", lambda: session.execute("LOCAL_GREP", arguments={"pattern": "needle"}))
    facts.refusal("another tool beside it", lambda: session.execute("GITHUB_X", arguments={"a": 1}))
    facts.of("search beside it", lambda: session.search(query="search files for a pattern"))
    again = facts.of("attach", lambda: composio.use(session.session_id, custom_tools=[grep]), seen)
    facts.of("custom tool after attach", lambda: again.execute("GREP", arguments={"pattern": "again"}))


def agents(composio: Any, facts: Facts) -> None:
    """A framework that calls the functions it was given: the SDK sends each call where it belongs."""
    agentic = Composio(provider=Callables(), allow_tracking=False)

    def shout(given: Pattern, context: Any) -> dict[str, Any]:
        """Make it loud."""
        return {"loud": given.pattern.upper()}

    loud = agentic.experimental.tool(slug="SHOUT")(shout)
    session = agentic.create(user_id="u5", experimental={"custom_tools": [loud]})
    tools = facts.of("functions", session.tools, lambda made: list(made))
    facts.of("function", lambda: tools[WORKBENCH]({"code_to_execute": "6 * 7"}))
    facts.of("function that fails", lambda: tools[WORKBENCH]({"code_to_execute": "1/0"}))
    both = [
        {"tool_slug": "LOCAL_SHOUT", "arguments": {"pattern": "a"}},
        {"tool_slug": "GITHUB_X", "arguments": {}},
    ]
    facts.of(
        "a batch of both",
        lambda: tools["COMPOSIO_MULTI_EXECUTE_TOOL"]({"tools": both, "sync_response_to_workbench": False}),
    )


def files(composio: Any, facts: Facts) -> None:
    """Up and down, in every form, by links that the server made."""
    session = composio.create(user_id="user_123")
    mount = session.experimental.files
    Path("sales.csv").write_text("region,total\nwest,10\n", encoding="utf-8")
    shown = ("expires_at", "mount_relative_path", "sandbox_mount_prefix", "download_url", "filename")

    def remote(file: Any) -> dict[str, Any]:
        return {name: getattr(file, name) for name in shown} | {"text": file.text()}

    facts.of("list of nothing", mount.list)
    facts.of("upload of a path", lambda: mount.upload("./sales.csv"), remote)
    facts.of(
        "upload to a folder",
        lambda: mount.upload(Path("sales.csv"), remote_path="data/in/sales.csv", mimetype="text/csv"),
        remote,
    )
    facts.of(
        "upload of bytes",
        lambda: mount.upload(b'{"a":1}', remote_path="data.json", mimetype="application/json"),
        remote,
    )
    facts.of("upload without a name", lambda: mount.upload(b'{"a":1}', mimetype="application/json"), remote)
    facts.of(
        "the sandbox sees them",
        lambda: session.execute(
            BASH, arguments={"command": "cd /mnt/files && find . -name '*.csv' | sort && cat sales.csv"}
        ),
    )
    facts.of("list", mount.list)
    first = facts.of("first page", lambda: mount.list(limit=1))
    facts.of("second page", lambda: mount.list(cursor=first.next_cursor, limit=10))
    facts.of("list of a folder", lambda: mount.list(path="/data", limit=10))
    facts.refusal("list of a cursor of nobody", lambda: mount.list(cursor="no cursor!", limit=10))
    facts.refusal("list of another mount", lambda: mount.list(mount_id="other"))
    session.execute(WORKBENCH, arguments={"code_to_execute": "open('/mnt/files/report.pdf', 'wb').write(b'PDF!')"})
    report = facts.of("download", lambda: mount.download("/report.pdf"), remote)
    facts.of("save", lambda: report.save("./report.pdf"), lambda _: Path("report.pdf").read_text(encoding="utf-8"))
    facts.of("buffer", report.buffer)
    facts.refusal("download of nobody", lambda: mount.download("/missing.pdf").buffer())
    facts.refusal("upload out of the mount", lambda: mount.upload(b"x", remote_path="../x", mimetype="text/plain"))
    facts.of("delete of a file", lambda: mount.delete("/sales.csv"))
    facts.of("delete of a folder", lambda: mount.delete("/data"))
    facts.refusal("delete of what is gone", lambda: mount.delete("/sales.csv"))
    facts.of("list at the end", mount.list)


def refusals(composio: Any, facts: Facts) -> None:
    """What a wrong key, and one that may not proxy, come to; and a token for one session."""
    base = os.environ["COMPOSIO_BASE_URL"]
    nobody = Composio(api_key="wbk_nobody", base_url=base, allow_tracking=False)
    facts.refusal("create with a wrong key", lambda: nobody.create(user_id="u"))
    runner = Composio(api_key=os.environ["RUN_KEY"], base_url=base, allow_tracking=False)
    session = facts.of("create with the narrow key", lambda: runner.create(user_id="u"), seen)
    facts.refusal(
        "proxy with the narrow key", lambda: session.proxy_execute(toolkit="github", endpoint="/user", method="GET")
    )
    facts.refusal("create for nobody", lambda: composio.create(user_id=""))


def main() -> None:
    """Every topic, whatever became of the one before."""
    facts = Facts()
    composio = Composio(allow_tracking=False)
    for topic in (sessions, changes, calls, *((approvals,) if NEWEST else ()), custom_tools, agents, files, refusals):
        facts.refusal(f"all of {topic.__name__}", functools.partial(topic, composio, facts))
    facts.write()


if __name__ == "__main__":
    main()
