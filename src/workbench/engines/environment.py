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
# What is called pip, npm and the like inside asks outside, as there is no way to an index; what makes Node and R ask.
_PACKAGES = "workbench_guest/packages"
_NODE_OPTIONS = "NODE_OPTIONS"
# Where Node's own look-up finds packages from every folder.
_NODE_PROGRAMS = "/node_modules/.bin"
# After those of the image, as R writes them.
_R_LIBRARIES = "/usr/local/lib/R/site-library:%S"


def base_environment(image: Image, *, home: str, scratch: str, guest_root: str, packages: str) -> dict[str, str]:
    """For processes of `image` whose own folders are `home` and `scratch`, as they see them.

    `guest_root` is the folder that holds the guest's package, `packages` the one that holds what is installed for a
    session, both as they see them.
    """
    prefix = Path(image.python).parent.parent
    installed = [f"{packages}/{lib.name}/bin" for lib in sorted(prefix.glob("lib/python3.*"))]
    hooks = f"{guest_root}/{_PACKAGES}"
    programs = [
        f"{hooks}/bin",
        f"{prefix}/bin",
        f"{home}/.local/bin",
        "/usr/local/bin",
        "/usr/bin",
        "/bin",
    ]
    base = {
        "PATH": ":".join((*programs, *installed, _NODE_PROGRAMS)),
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
        # Which the hooks ask by, whatever the agent calls python.
        "WORKBENCH_PYTHON": image.python,
        _NODE_OPTIONS: f"--require={hooks}/node/hook.cjs",
        "R_PROFILE": f"{hooks}/r/Rprofile",
        "R_LIBS_SITE": f"{_R_LIBRARIES}:{packages}/r/library",
    }
    return joined(base, dict(image.env))


def joined(base: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """`base` with what somebody wants otherwise; where they have modules or options of their own, both count.

    Ours come after their modules, so that theirs are found first, and before their options, which may be about ours.
    """
    paths = [env[_MODULES] for env in (own, base) if env.get(_MODULES)]
    options = [env[_NODE_OPTIONS] for env in (base, own) if env.get(_NODE_OPTIONS)]
    both = {_MODULES: ":".join(paths), _NODE_OPTIONS: " ".join(options)}
    return {**base, **own, **{name: value for name, value in both.items() if value}}
