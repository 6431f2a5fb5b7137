"""What to do about each no: the exact command or setting, by the step that failed and this machine's own state."""

from __future__ import annotations

import os
from pathlib import Path

_APPARMOR_SYSCTL = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_CLONE_SYSCTL = Path("/proc/sys/kernel/unprivileged_userns_clone")
_COUNT_SYSCTL = Path("/proc/sys/user/max_user_namespaces")


def remedy(step: str, error: str, interpreter: str) -> str:
    """One or two sentences; empty when there is nothing to do. `interpreter` is the one that makes namespaces."""
    if step == "image":
        return "run `make setup`, or `workbench image build`"
    if "user namespace" in step:
        return user_namespace_remedy(interpreter)
    if step == "limits by cgroup v1" and os.geteuid() != 0:
        return "version 1 groups belong to root; nothing to do as an ordinary user"
    if step == "limits by cgroup v2" and "not mounted" not in error and os.geteuid() != 0:
        return (
            "start the host in a scope of its own: `systemd-run --user --scope -p Delegate=yes workbench host run` "
            "(needs a login session, or `loginctl enable-linger`)"
        )
    if step.startswith("limits by"):
        return ""
    if "mount" in step or "root" in step:
        return (
            "in a container, start it with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`; "
            "on a machine of its own, see the host's log"
        )
    return f"see SECURITY.md, and report this line: {step}: {error}"


def user_namespace_remedy(interpreter: str) -> str:
    """Which of the three switches that distributions have is off, and how to turn it on."""
    if _is(_APPARMOR_SYSCTL, "1"):
        return (
            "AppArmor refuses user namespaces to ordinary users here (Ubuntu 23.10 and newer). Either, as root: "
            "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` (and the same line in /etc/sysctl.d/), or a "
            "profile for the interpreter alone in /etc/apparmor.d/workbench: "
            f"`abi <abi/4.0>, profile workbench {interpreter} flags=(unconfined) {{ userns, }}`, "
            "then `apparmor_parser -r /etc/apparmor.d/workbench`"
        )
    if _is(_CLONE_SYSCTL, "0"):
        return "as root: `sysctl -w kernel.unprivileged_userns_clone=1`"
    if _is(_COUNT_SYSCTL, "0"):
        return "as root: `sysctl -w user.max_user_namespaces=15000`"
    return (
        "the kernel or a container's filter refuses user namespaces: in Docker add "
        "`--security-opt seccomp=unconfined --security-opt systempaths=unconfined`, or run as root"
    )


def _is(path: Path, value: str) -> bool:
    try:
        return path.read_text().strip() == value
    except OSError:
        return False
