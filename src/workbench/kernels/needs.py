"""Whether the machine has what a runtime needs, asked before anything of it is started."""

from __future__ import annotations

import os
import shutil

from workbench.errors import KernelUnavailable
from workbench.model.runtime import Need, Runtime

# The machine's own part of what sandboxes look programs up in; scripts/has-program looks in the same.
_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")
# Of the machine's folders, those that sandboxes see; a link that leads out of them leads nowhere inside.
_SEEN = ("/usr/", "/bin/", "/sbin/", "/lib/")


def check_needs(runtime: Runtime, *, isolated: bool) -> None:
    """Nothing, if everything is there.

    Raises:
        KernelUnavailable: with what is missing, and how it is installed.
    """
    missing = [need for need in runtime.needs if not any(_there(one, isolated) for one in need.any_of)]
    if missing:
        what = " and ".join(" or ".join(need.any_of) for need in missing)
        how = " && ".join(dict.fromkeys(need.install for need in missing))
        raise KernelUnavailable(
            f"{runtime.title} is not installed on this machine: there is no {what}; whoever runs the workbench can "
            f"install it with `{how}`",
            {"runtime": runtime.name, "missing": _names(missing)},
        )


def _there(name: str, isolated: bool) -> bool:
    if "/" in name:
        found = [name] if os.path.exists(name) else []
    else:
        # Whoever meets a link that leads nowhere looks on in the next folder.
        found = [path for folder in _FOLDERS if (path := shutil.which(name, path=folder)) is not None]
    return any(not isolated or os.path.realpath(path).startswith(_SEEN) for path in found)


def _names(missing: list[Need]) -> str:
    return ", ".join(need.any_of[0] for need in missing)
