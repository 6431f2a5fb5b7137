"""Tools that run in this program: which they are, running one, and running some among others in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from workbench.client._requests import given
from workbench.client.composio.values import CustomTool, ExecuteResponse, JsonObject

MANY = "COMPOSIO_MULTI_EXECUTE_TOOL"


class CustomTools:
    """Those of a session, by any name that they are called by."""

    def __init__(
        self, tools: Iterable[CustomTool | Mapping[str, Any]] = (), toolkits: Iterable[Mapping[str, Any]] = ()
    ) -> None:
        """What is a plain definition is sent as it is, and cannot be run."""
        self._by_slug: dict[str, CustomTool] = {}
        self._tools = [self._known(one) for one in tools]
        self._toolkits = [self._toolkit(one) for one in toolkits]

    def definitions(self) -> JsonObject:
        """What is sent with every request that may be about them: the server does not keep them."""
        return given({"custom_tools": self._tools or None, "custom_toolkits": self._toolkits or None})

    def find(self, slug: object) -> CustomTool | None:
        """The one that is called so, in whatever letters."""
        return self._by_slug.get(slug.strip().upper()) if isinstance(slug, str) else None

    def called(self, slug: str, original: str) -> None:
        """The name that the server gave to one."""
        if (known := self.find(original)) is not None:
            self._by_slug[slug.upper()] = known

    def _known(self, one: CustomTool | Mapping[str, Any], toolkit: str = "") -> JsonObject:
        if isinstance(one, Mapping):
            return dict(one)
        within = toolkit or one.extends_toolkit
        for slug in (one.slug, f"LOCAL_{within}_{one.slug}" if within else f"LOCAL_{one.slug}"):
            self._by_slug[slug.upper()] = one
        return given(
            {
                "slug": one.slug,
                "name": one.name or one.slug,
                "description": one.description,
                "input_schema": one.input_schema,
                "output_schema": one.output_schema,
                "extends_toolkit": one.extends_toolkit,
                "preload": one.preload,
            }
        )

    def _toolkit(self, told: Mapping[str, Any]) -> JsonObject:
        slug = str(told.get("slug", ""))
        return {**told, "tools": [self._known(one, slug) for one in told.get("tools", ())]}


def run(tool: CustomTool, arguments: JsonObject) -> ExecuteResponse:
    """One: whatever it raises is its answer, as of a tool that runs elsewhere."""
    try:
        data = tool.execute(arguments)
    except Exception as problem:  # noqa: BLE001  (it is somebody else's function, and may raise anything)
        said = f"{tool.slug}: {type(problem).__name__}: {problem}"
        return ExecuteResponse(data={}, error=said, log_id="", result_type="failed")
    whole = dict(data) if isinstance(data, Mapping) else {"result": data}
    return ExecuteResponse(data=whole, error=None, log_id="", result_type="completed")


def are_among(tools: object, custom: CustomTools) -> bool:
    """Whether some of a call of many are of this program; what is no list of tools is for the server to judge."""
    return isinstance(tools, list) and any(_mine(one, custom) is not None for one in tools)


def run_among(
    arguments: Mapping[str, Any], custom: CustomTools, ask: Callable[[JsonObject], ExecuteResponse]
) -> ExecuteResponse:
    """A call of many: the server runs its own, and we ours behind it.

    The server is asked first: what it refuses as a whole has then not been done by halves.
    """
    tools = list(arguments["tools"])
    theirs = [index for index, one in enumerate(tools) if _mine(one, custom) is None]
    answer = ExecuteResponse(data={}, error=None, log_id="", result_type="completed")
    if theirs:
        answer = ask({**arguments, "tools": [tools[index] for index in theirs]})
        if answer.error is not None and "results" not in answer.data:
            return answer
    results: dict[int, JsonObject] = {}
    for place, found in zip(theirs, answer.data.get("results") or (), strict=False):
        results[place] = {**found, "index": place}
    for index, one in enumerate(tools):
        if (tool := _mine(one, custom)) is not None:
            results[index] = _as_result(index, one["tool_slug"], run(tool, dict(one.get("arguments") or {})))
    return _together(answer, [results[index] for index in sorted(results)])


def _mine(one: object, custom: CustomTools) -> CustomTool | None:
    return custom.find(one.get("tool_slug")) if isinstance(one, Mapping) else None


def _as_result(index: int, slug: str, done: ExecuteResponse) -> JsonObject:
    response = {"successful": done.successful, "data": done.data, **given({"error": done.error})}
    return {"tool_slug": slug, "index": index, "response": response, "error": done.error}


def _together(answer: ExecuteResponse, results: list[JsonObject]) -> ExecuteResponse:
    failed = sum(1 for one in results if one.get("error"))
    counts = {"total_count": len(results), "success_count": len(results) - failed, "error_count": failed}
    data = {**answer.data, "results": results, **counts}
    if failed < len(results):
        return replace(answer, data=data, error=None, result_type="completed")
    said = f"all {len(results)} tools failed; each says why in `results`"
    return replace(answer, data=data, error=said, result_type="failed")
