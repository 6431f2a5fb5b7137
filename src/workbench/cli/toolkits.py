"""`workbench toolkits`: which toolkits agents have besides those of the workbench."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from workbench.cli.asking import OWNER, ask_service, owner_of
from workbench.cli.outcome import EXIT_OURS
from workbench.cli.printing import notice
from workbench.cli.running import json_option
from workbench.cli.tables import plain, print_table
from workbench.cli.values import JsonObject, print_json
from workbench.contracts.added import Standing
from workbench.core.toolkit_requests import AddToolkit, ListToolkits, OwnToolkit, ToolkitName
from workbench.errors import InvalidRequest, NotFound
from workbench.model.access import Caller
from workbench.model.ids import project_id
from workbench.model.toolkit import Tool
from workbench.settings import Settings
from workbench.wiring import Service

_MOST_DESCRIPTION = 80
_ALL = ListToolkits(by=OWNER, everywhere=True)

_project_option = click.option(
    "--project", default=None, metavar="PROJECT", help="For this one only; for all unless given."
)


@click.group()
def toolkits() -> None:
    """Toolkits of your own: from MCP servers, Python functions, descriptions of services, and Composio.

    Servers that run follow by themselves. `list --shipped` lists those that come with the workbench.
    """


@toolkits.command(context_settings={"ignore_unknown_options": False})
@click.argument("slug")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", default=None, metavar="URL", help="An MCP server that is asked by HTTP.")
@click.option("--functions", default=None, metavar="FILE", help="A Python file with functions.")
@click.option(
    "--openapi",
    default=None,
    metavar="FILE|URL",
    help="A service, by its document of OpenAPI 3 or of Google's discovery.",
)
@click.option("--composio", multiple=True, metavar="TOOLKIT", help="A toolkit of Composio's; repeatable.")
@click.option("--env", "variables", multiple=True, metavar="NAME[=VALUE]",
              help="For a program or functions; without a value that of this environment. Repeatable.")  # fmt: skip
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="For --url; repeatable.")
@click.option("--bearer-from", default=None, metavar="VARIABLE", help="For --url: the variable that has its token.")
@click.option("--key-from", default=None, metavar="VARIABLE", help="For --composio: the variable that has its key.")
@click.option("--folder", default=None, metavar="FOLDER", help="Where a program starts; one of its own unless given.")
@click.option("--address", default=None, metavar="URL", help="For --composio: where that is, if it is elsewhere.")
@click.option("--base-url", default=None, metavar="URL", help="For --openapi: where the service is.")
@click.option("--name", default=None, help="What people call it.")
@click.option("--description", default=None, help="What it is for; agents search by it.")
@click.option("--timeout", "timeout_s", type=int, default=None, metavar="SECONDS", help="For one call.")
@click.option("--memory", "memory_mib", type=int, default=None, metavar="MIB", help="For a program and all it starts.")
@_project_option
@click.option("--no-test", is_flag=True, help="Keep it although nobody knows whether it works.")
@json_option
@click.pass_obj
def add(settings: Settings, /, slug: str, no_test: bool, as_json: bool, project: str | None, **given: object) -> None:
    """Add the toolkit SLUG: an MCP server that COMMAND starts, written behind --, or what an option names.

    \b
    workbench toolkits add files -- mcp-server-filesystem /srv/shared
    workbench toolkits add tracker --url https://mcp.example.com/mcp --bearer-from TRACKER_TOKEN
    workbench toolkits add billing --functions ./billing.py
    workbench toolkits add shop --openapi ./shop.json
    workbench toolkits add hosted --composio gmail --composio slack --key-from COMPOSIO_API_KEY
    """
    request = AddToolkit(
        by=_owner(project), slug=slug, given=_given(given), for_all=project is None, try_first=not no_test
    )
    standing = ask_service(settings, lambda service: service.toolkits.add(request))
    if as_json:
        print_json(toolkit_json(standing))
        return
    count = "not tried" if no_test else f"{len(standing.tools)} tools"
    click.echo(f"{slug} is added for {'all projects' if project is None else project}: {count}")
    if any(not one.no_auth for one in standing.toolkits):
        notice(f"its tools need an account: `workbench connect {slug} --user USER` connects one")
    _tell_refused(standing)


@toolkits.command("list")
@click.option("--shipped", is_flag=True, help="Those that come with the workbench instead.")
@json_option
@click.pass_obj
def list_(settings: Settings, shipped: bool, as_json: bool) -> None:
    """All that were added, in the records and in the settings file, with how they are."""
    if shipped:
        _print_shipped(ask_service(settings, lambda service: service.toolkits.own(_ALL)), as_json=as_json)
        return
    found = ask_service(settings, lambda service: service.toolkits.list(_ALL))
    if found.file_problem:
        notice(f"the settings file is not used as it is: {plain(found.file_problem)}")
    if as_json:
        print_json([_summary(one) for one in found.items])
        return
    print_table(
        ("TOOLKIT", "FROM", "FOR", "KEPT IN", "TOOLS", "STATE"),
        (
            (
                one.added.slug,
                one.added.kind.value,
                one.added.project or "all",
                "file" if one.added.from_file else "records",
                str(len(one.tools)),
                one.problem or "ok",
            )
            for one in found.items
        ),
    )
    if not found.items:
        notice("none were added yet; those that come with the workbench: `workbench toolkits list --shipped`")


@toolkits.command()
@click.argument("slug")
@_project_option
@json_option
@click.pass_obj
def show(settings: Settings, slug: str, project: str | None, as_json: bool) -> None:
    """The toolkit SLUG, with its tools; also one that comes with the workbench."""
    request = ToolkitName(by=_owner(project), slug=slug, for_all=project is None)

    async def shown(service: Service) -> Standing | OwnToolkit:
        try:
            return await service.toolkits.show(request)
        except NotFound:
            own = [one for one in await service.toolkits.own(_ALL) if one.toolkit.slug == slug]
            if not own:
                raise
            return own[0]

    found = ask_service(settings, shown)
    if isinstance(found, Standing):
        _print(found, as_json=as_json)
    else:
        _print_own(found, as_json=as_json)


@toolkits.command()
@click.argument("slug")
@_project_option
@json_option
@click.pass_obj
def test(settings: Settings, slug: str, project: str | None, as_json: bool) -> None:
    """Start or reach the toolkit SLUG by itself, list its tools, and end it; or say what is wrong."""
    request = ToolkitName(by=_owner(project), slug=slug, for_all=project is None)
    _print(ask_service(settings, lambda service: service.toolkits.test(request)), as_json=as_json)


@toolkits.command()
@click.argument("slug")
@_project_option
@click.pass_obj
def remove(settings: Settings, slug: str, project: str | None) -> None:
    """Drop the toolkit SLUG with its secrets. What runs of it is ended."""
    request = ToolkitName(by=_owner(project), slug=slug, for_all=project is None)
    ask_service(settings, lambda service: service.toolkits.remove(request))
    click.echo(f"{slug} is removed")


def _owner(project: str | None) -> Caller:
    return OWNER if project is None else owner_of(project_id(project))


def _given(told: dict[str, object]) -> dict[str, object]:
    """What was typed, as `model.added` has it."""
    found: dict[str, object] = {name: one for name, one in told.items() if name in _PLAIN and one is not None}
    for name in ("command", "composio"):
        words = told[name]
        if isinstance(words, tuple) and words:
            found[name] = list(words)
    command = found.get("command")
    if isinstance(command, list) and os.sep in command[0]:
        # From where it is typed: the program starts elsewhere.
        found["command"] = [os.path.abspath(command[0]), *command[1:]]
    for name in ("functions", "openapi", "folder"):
        path = found.get(name)
        if isinstance(path, str) and not path.startswith(("http://", "https://")):
            found[name] = os.path.abspath(path)
    if variables := _pairs(told["variables"]):
        found["env"] = {name: value if said else _variable(name) for name, (value, said) in variables.items()}
    if headers := _pairs(told["headers"]):
        found["headers"] = {name: value for name, (value, _) in headers.items()}
    for name, option in (("bearer", "bearer_from"), ("key", "key_from")):
        if isinstance(variable := told[option], str):
            found[name] = _variable(variable)
    return found


_PLAIN = ("url", "functions", "openapi", "folder", "address", "base_url", "name", "description", "timeout_s",
          "memory_mib")  # fmt: skip


def _pairs(told: object) -> dict[str, tuple[str, bool]]:
    assert isinstance(told, tuple)
    parts = [str(one).partition("=") for one in told]
    return {name.strip(): (value, bool(said)) for name, said, value in parts}


def _variable(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise InvalidRequest(f"the variable {name} is to be used, and is not set here: export it first")
    return value


def _print_shipped(found: Sequence[OwnToolkit], *, as_json: bool) -> None:
    if as_json:
        print_json([_own_summary(one) for one in found])
        return
    print_table(
        ("TOOLKIT", "NAME", "TOOLS", "CONNECTED BY", "WHAT IT IS FOR"),
        (
            (
                one.toolkit.slug,
                one.toolkit.name,
                str(len(one.tools)),
                " ".join(one.toolkit.auth_schemes) or "nothing",
                one.toolkit.description.split("\n")[0][:_MOST_DESCRIPTION],
            )
            for one in found
        ),
    )


def _print_own(found: OwnToolkit, *, as_json: bool) -> None:
    if as_json:
        print_json({**_own_summary(found), "tools": [_tool_json(one) for one in found.tools]})
        return
    ways = " or ".join(found.toolkit.auth_schemes)
    needs = f"its accounts are connected by {ways}" if ways else "it needs no account"
    click.echo(f"{found.toolkit.slug}: comes with the workbench; {needs}")
    _print_tools(found.tools)


def _own_summary(found: OwnToolkit) -> JsonObject:
    told = found.toolkit
    return {
        "slug": told.slug,
        "name": told.name,
        "description": told.description,
        "auth_schemes": list(told.auth_schemes),
        "tool_count": len(found.tools),
    }


def _print(standing: Standing, *, as_json: bool) -> None:
    if as_json:
        print_json(toolkit_json(standing))
    else:
        added = standing.added
        click.echo(f"{added.slug}: from `{added.kind}`, for {added.project or 'all projects'}")
        for name, value in added.options.items():
            click.echo(f"  {name}: {plain(str(value))}")
        if added.secrets:
            click.echo(f"  kept sealed: {', '.join(sorted(added.secrets))}")
        _print_tools(standing.tools)
        _tell_refused(standing)
    if standing.problem:
        click.echo(f"error: {plain(standing.problem)}", err=True)
        sys.exit(EXIT_OURS)


def _print_tools(tools: Sequence[Tool]) -> None:
    rows = ((one.slug, " ".join(one.tags), one.description.split("\n")[0][:_MOST_DESCRIPTION]) for one in tools)
    print_table(("TOOL", "TAGS", "WHAT IT DOES"), rows)


def _tell_refused(standing: Standing) -> None:
    for name, why in standing.refused.items():
        notice(f"not used: {plain(name)}: {plain(why)}")


def toolkit_json(standing: Standing) -> JsonObject:
    """One, with its tools and without its secrets."""
    tools = [_tool_json(one) for one in standing.tools]
    return {**_summary(standing), "options": standing.added.options, "tools": tools}


def _tool_json(tool: Tool) -> JsonObject:
    return {
        "slug": tool.slug,
        "name": tool.name,
        "description": tool.description,
        "tags": list(tool.tags),
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
    }


def _summary(standing: Standing) -> JsonObject:
    added = standing.added
    return {
        "slug": added.slug,
        "kind": added.kind.value,
        "project": added.project,
        "from_file": added.from_file,
        "added_at": added.added_at or None,
        "secrets": sorted(added.secrets),
        "tool_count": len(standing.tools),
        "problem": standing.problem,
        "refused": dict(standing.refused),
    }
