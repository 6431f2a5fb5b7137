"""The variables that every process of a sandbox starts with, whatever the engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from workbench.model.image import Image

# Where an engine has no pid 1 to end everything by, this is how a sandbox's processes are found.
SANDBOX_VARIABLE = "WORKBENCH_SANDBOX"


# Below the guest's root: what every Python of a sandbox can import besides what is installed.
_IMPORTABLE = "workbench_guest/importable"
_MODULES = "PYTHONPATH"


def base_environment(image: Image, *, home: str, scratch: str, guest_root: str) -> dict[str, str]:
    """For processes of `image` whose own folders are `home` and `scratch`, as they see them.

    `guest_root` is the folder that holds the guest's package, as they see it.
    """
    base = {
        "PATH": f"{Path(image.python).parent}:{home}/.local/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "USER": "user",
        "LOGNAME": "user",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "TMPDIR": scratch,
        "MPLCONFIGDIR": f"{home}/.config/matplotlib",
        "PYTHONDONTWRITEBYTECODE": "1",
        _MODULES: f"{guest_root}/{_IMPORTABLE}",
    }
    return joined(base, dict(image.env))


def joined(base: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """`base` with what somebody wants otherwise; where they have modules of their own, ours come after those."""
    paths = [env[_MODULES] for env in (own, base) if env.get(_MODULES)]
    return {**base, **own, **({_MODULES: ":".join(paths)} if paths else {})}
