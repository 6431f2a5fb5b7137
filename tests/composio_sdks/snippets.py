"""Every snippet of the product's documents, as it stands there."""

from __future__ import annotations

# The page of the sandbox. Two parts, as the second begins "after the agent writes a result".
PYTHON_CREATE = """\
session = composio.create("user_123")
"""

PYTHON_UPLOAD = """\
# Upload a local file; the sandbox sees it at /mnt/files/sales.csv
uploaded = session.experimental.files.upload("./sales.csv")
print(uploaded.sandbox_mount_prefix, uploaded.mount_relative_path)
# /mnt/files sales.csv
"""

PYTHON_DOWNLOAD = """\
# After the agent writes a result in the sandbox, download it
report = session.experimental.files.download("/report.pdf")
report.save("./report.pdf")
"""

TYPESCRIPT_UPLOAD = """\
const session = await composio.create("user_123");
// Upload a local file; the sandbox sees it at /mnt/files/sales.csv
const uploaded = await session.experimental.files.upload("./sales.csv");
console.log(uploaded.sandboxMountPrefix, uploaded.mountRelativePath);
// /mnt/files sales.csv
"""

TYPESCRIPT_DOWNLOAD = """\
// After the agent writes a result in the sandbox, download it
const report = await session.experimental.files.download("/report.pdf");
await report.save("./report.pdf");
"""

# The page of the local sandbox.
TYPESCRIPT_LOCAL = """\
import { Composio } from '@composio/core';
import { experimental_createLocalWorkbenchSession } from '@composio/experimental/workbench';
const composio = new Composio({ apiKey: process.env.COMPOSIO_API_KEY });
// Create the session with the remote sandbox disabled, so code runs in your box.
const session = await composio.create('user_123', {
toolkits: ['github'],
workbench: { enable: false },
});
const { helperSource, env } = await experimental_createLocalWorkbenchSession(composio, session);
"""

PYTHON_HELPER = """\
from composio_helper import run_composio_tool, invoke_llm, web_search

response, error = run_composio_tool(
    "GITHUB_GET_A_PULL_REQUEST",
    {"owner": "composiohq", "repo": "composio", "pull_number": 1},
)
"""
