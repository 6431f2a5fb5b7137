"""Names of things, as distinct types; each is safe as a file name and short enough for a socket path."""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import NewType

from workbench.errors import InvalidRequest

SandboxId = NewType("SandboxId", str)
ProcessId = NewType("ProcessId", str)
MountId = NewType("MountId", str)
HostId = NewType("HostId", str)
SessionId = NewType("SessionId", str)
KernelId = NewType("KernelId", str)
CellId = NewType("CellId", str)
ProjectId = NewType("ProjectId", str)
KeyId = NewType("KeyId", str)
CallId = NewType("CallId", str)

DEFAULT_PROJECT = ProjectId("default")

# BARRIER: ids become file and control-group names; held by tests/unit/model/test_ids.py.
_SHAPE = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")
_PASSING = re.compile(r"mcp-[0-9a-f]{12}")
_USERS_OWN = re.compile(r"user-[0-9a-f]{24}")


def checked(kind: str, text: str, most: int = 48) -> str:
    """`text`, if it can be an id.

    Raises:
        InvalidRequest: it is empty, too long, or has other characters than a-z, 0-9, _ and -.
    """
    if not _SHAPE.fullmatch(text) or len(text) > most:
        raise InvalidRequest(
            f"not a {kind} id: {text[:60]!r}; use 1 to {most} of a-z, 0-9, _ and -, starting with a letter or digit"
        )
    return text


def sandbox_id(text: str) -> SandboxId:
    """Checked."""
    return SandboxId(checked("sandbox", text))


def process_id(text: str) -> ProcessId:
    """Checked."""
    return ProcessId(checked("process", text))


def mount_id(text: str) -> MountId:
    """Checked."""
    return MountId(checked("mount", text))


def session_id(text: str) -> SessionId:
    """Checked; 40 at most, so that what is named after it still fits."""
    return SessionId(checked("session", text, most=40))


def is_passing(session: SessionId) -> bool:
    """Whether it is a name that clients of MCP are given which name no session themselves."""
    return _PASSING.fullmatch(session) is not None


def is_users_own(session: SessionId) -> bool:
    """Whether it is such a name as `users_own_session` gives."""
    return _USERS_OWN.fullmatch(session) is not None


def users_own_session(project: ProjectId, user: str) -> SessionId:
    """The one of a user's that nobody has to name. Names are the whole server's, so the project is in it."""
    return SessionId(f"user-{hashlib.sha256(f'{project}/{user}'.encode()).hexdigest()[:24]}")


def kernel_id(text: str) -> KernelId:
    """Checked."""
    return KernelId(checked("kernel", text))


def cell_id(text: str) -> CellId:
    """Checked."""
    return CellId(checked("cell", text))


def project_id(text: str) -> ProjectId:
    """Checked."""
    return ProjectId(checked("project", text))


def new_key_id() -> KeyId:
    """One that nobody has. Without a `_`, by which it is told from the secret behind it."""
    return KeyId(secrets.token_hex(6))


def new_session_id() -> SessionId:
    """One that nobody has."""
    return SessionId(f"ses-{secrets.token_hex(6)}")


def new_cell_id() -> CellId:
    """One that nobody has."""
    return CellId(f"c-{secrets.token_hex(6)}")


def new_kernel_id() -> KernelId:
    """One that nobody has; a branch that is made anew under an old name must not meet the kernel of the old one."""
    return KernelId(f"k-{secrets.token_hex(6)}")


def new_sandbox_id() -> SandboxId:
    """One that nobody has."""
    return SandboxId(f"sb-{secrets.token_hex(8)}")


def new_process_id() -> ProcessId:
    """One that nobody has."""
    return ProcessId(f"p-{secrets.token_hex(6)}")


def new_host_id() -> HostId:
    """One that nobody has."""
    return HostId(f"h-{secrets.token_hex(4)}")
