"""The `workbench` command as it is, with the conformance suite's tools and resources in the place of ours.

python -m tests.mcp.conformance.fixture_server serve
"""

from __future__ import annotations

from tests.mcp.conformance.fixture_tools import FIXTURE_TOOLS, read_fixture

from workbench.cli.main import main
from workbench.mcp import server

if __name__ == "__main__":
    vars(server).update(ALL_TOOLS=FIXTURE_TOOLS, read_resource=read_fixture)
    main()
