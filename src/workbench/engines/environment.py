"""The variables that every process of a sandbox starts with, whatever the engine."""

from __future__ import annotations

from pathlib import Path

from workbench.model.image import Image

# Where an engine has no pid 1 to end everything by, this is how a sandbox's processes are found.
SANDBOX_VARIABLE = "WORKBENCH_SANDBOX"


def base_environment(image: Image, *, home: str, scratch: str) -> dict[str, str]:
    """For processes of `image` whose own folders are `home` and `scratch`, as they see them."""
    return {
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
        **dict(image.env),
    }
