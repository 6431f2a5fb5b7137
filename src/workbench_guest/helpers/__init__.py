"""What code in every sandbox can call: each helper gives `(result, error)`, with an empty error on success.

Only Python's own library, for any Python from 3.9 on; how the workbench is reached is left to `calling`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from workbench_guest.helpers.dressing import dress_with as dress_with
from workbench_guest.helpers.extraction import smart_file_extract
from workbench_guest.helpers.mount import get_mount_file_s3_key, get_mount_file_url
from workbench_guest.helpers.services import invoke_llm, web_search
from workbench_guest.helpers.shapes import print_json_structure
from workbench_guest.helpers.tools import proxy_execute, run_composio_tool
from workbench_guest.helpers.uploads import upload_local_file

__all__ = [
    "get_mount_file_s3_key",
    "get_mount_file_url",
    "invoke_llm",
    "print_json_structure",
    "proxy_execute",
    "run_composio_tool",
    "smart_file_extract",
    "upload_local_file",
    "web_search",
]

# A session without tool execution has this variable, with the value `false`, and not these three.
TOOL_EXECUTION_VARIABLE = "WORKBENCH_TOOL_EXECUTION"
NEEDING_TOOL_EXECUTION = ("run_composio_tool", "invoke_llm", "web_search")


def offered(environment: Mapping[str, str]) -> dict[str, Any]:
    """The helpers of a process with this environment, by name."""
    off = environment.get(TOOL_EXECUTION_VARIABLE, "").strip().lower() == "false"
    return {name: globals()[name] for name in __all__ if not (off and name in NEEDING_TOOL_EXECUTION)}


def why_missing(module: str) -> Callable[[str], NoReturn]:
    """For `__getattr__` of a module that has the offered ones: who asks for another one is told why it has none."""

    def explain(name: str) -> NoReturn:
        if name in NEEDING_TOOL_EXECUTION:
            # Not an AttributeError, of which an import would tell in words of its own.
            raise ImportError(f"{module} has no {name}: tool execution is switched off for this session")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return explain
