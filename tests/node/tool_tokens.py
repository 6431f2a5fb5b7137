"""What our tools cost a model that is shown them: tokens of each definition, by the encoding o200k."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.mcp.families import Family
from workbench.mcp.tool import Tool
from workbench.mcp.tools import ALL_TOOLS, ROUTER_TOOLS
from workbench.mcp.tools.router import RouterTool

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "mcp.md"
BEGIN, END = "<!-- tokens -->", "<!-- /tokens -->"
_NODE_PARTS = Path(__file__).parent / "node_modules"
_COUNT = """
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { readFileSync } from "node:fs";
console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map((text) => countTokens(text))));
"""
_COUNT_S = 60.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens of one tool."""

    family: Family
    name: str
    description: int
    seen: int
    """name, description and input schema: what clients give to a model"""
    whole: int
    """with the output schema, which some give it as well"""


def costs() -> list[Cost]:
    """Of every tool, in their order."""
    tools: tuple[Tool[Any] | RouterTool, ...] = (*ALL_TOOLS, *ROUTER_TOOLS)
    texts = [text for tool in tools for text in _texts(tool)]
    counts = iter(_counted(texts))
    return [Cost(tool.family, tool.name, next(counts), next(counts), next(counts)) for tool in tools]


def table(found: list[Cost]) -> str:
    """In Markdown."""
    lines = [
        "| family | tool | description | as most clients show it | with its output schema |",
        "|---|---|---|---|---|",
    ]
    for family in dict.fromkeys(one.family for one in found):
        of_family = [one for one in found if one.family is family]
        lines += [
            f"| {family.value} | `{one.name}` | {one.description} | {one.seen} | {one.whole} |" for one in of_family
        ]
        sums = (
            sum(values) for values in zip(*((one.description, one.seen, one.whole) for one in of_family), strict=True)
        )
        lines.append(f"| **{family.value}** | all {len(of_family)} | {' | '.join(f'**{count}**' for count in sums)} |")
    return "\n".join(lines)


def with_table(page: str, shown: str) -> str:
    """The page, with this in its place.

    Raises:
        ValueError: it has no such place.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for the table: {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{shown}\n{END}{after}"


def _texts(tool: Tool[Any] | RouterTool) -> tuple[str, str, str]:
    listed = tool.listed().model_dump(mode="json", by_alias=True, exclude_none=True)
    seen = {name: listed[name] for name in ("name", "description", "inputSchema")}
    whole = {**seen, "outputSchema": listed["outputSchema"]}
    return listed["description"], _compact(seen), _compact(whole)


def _compact(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _counted(texts: list[str]) -> list[int]:
    assert (_NODE_PARTS / ".ready").exists(), "run scripts/install-node-parts first"
    ran = subprocess.run(
        [str(_NODE_PARTS / ".bin" / "node"), "--input-type=module", "--eval", _COUNT],
        cwd=_NODE_PARTS.parent, input=json.dumps(texts), capture_output=True, text=True, timeout=_COUNT_S, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    counts: list[int] = json.loads(ran.stdout)
    return counts


def main() -> int:
    """Print the table, and put it into the page."""
    shown = table(costs())
    print(shown)
    try:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_table(page, shown), encoding="utf-8")
    except (FileNotFoundError, ValueError) as problem:
        print(f"measure-tool-tokens: not written to {PAGE.name}: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
