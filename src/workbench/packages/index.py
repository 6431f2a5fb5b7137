"""Where Python packages come from, for uv: what the operator set, or what the machine's pip is configured with."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path

from workbench.packages.running import environment

# In the order in which pip reads them: later ones count.
_FILES = ("/etc/pip.conf", "{home}/.pip/pip.conf", "{config}/pip/pip.conf")
_WEB = ("https://", "http://")


def uv_environment(given: Mapping[str, str], index: str) -> dict[str, str]:
    """Variables for uv, and nothing else of this process's."""
    pip = _pip_configuration(given)
    cert = given.get("PIP_CERT") or pip.get("cert", "")
    chosen = index or given.get("PIP_INDEX_URL") or pip.get("index-url", "")
    more = (given.get("PIP_EXTRA_INDEX_URL") or pip.get("extra-index-url", "")).split()
    # Folders beside the index are for whoever set up the machine: what is in them was not published.
    extra = [one for one in more if one.startswith(_WEB)] if not index else []
    told = {
        "UV_DEFAULT_INDEX": chosen,
        "UV_INDEX": " ".join(extra),
        "SSL_CERT_FILE": given.get("SSL_CERT_FILE") or cert,
    }
    return environment(given, **{name: value for name, value in told.items() if value})


def _pip_configuration(given: Mapping[str, str]) -> dict[str, str]:
    home = given.get("HOME", "/nonexistent")
    places = [one.format(home=home, config=given.get("XDG_CONFIG_HOME") or f"{home}/.config") for one in _FILES]
    if named := given.get("PIP_CONFIG_FILE"):
        places.append(named)
    read = configparser.ConfigParser(interpolation=None, strict=False)
    for place in places:
        try:
            read.read_string(Path(place).read_text(encoding="utf-8"))
        except (OSError, ValueError, configparser.Error):
            continue
    return {
        name: value for part in ("global", "install") if read.has_section(part) for name, value in read[part].items()
    }
