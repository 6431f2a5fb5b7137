"""Settings: frozen, read once from the environment. Nothing below the CLI reads the environment itself."""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import os
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.errors import InvalidRequest, InvalidSetting
from workbench.model.capability import Level
from workbench.model.corrections import DEFAULT_SWITCHES, DEFAULT_TEXT, switches_of, text_of
from workbench.model.packages import PackagePolicy

PREFIX = "WORKBENCH_"
_CHOICES = {"engine": ("namespace", "process"), "log_level": ("debug", "info", "warning", "error")}
_SWITCH = ("true", "false")
_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*")
# Those of workbench.mcp.families; tests/unit/test_settings.py compares them.
_TOOL_FAMILIES = ("workbench", "sandbox", "kernel", "router")
_DAY_S = 24 * 3600
# The least and the most of each.
_NUMBERS = {
    "pool_size": (0, 1000),
    "spool_max_mib": (1, 1024 * 1024),
    "cell_limit_max_s": (1, 7 * _DAY_S),
    "snapshots_kept": (1, 64),
    "listen_port": (0, 65_535),
    "max_body_mib": (1, 1024),
    "freeze_after_s": (0, 365 * _DAY_S),
    "end_after_s": (0, 365 * _DAY_S),
    "keep_cells_days": (0, 36_500),
    "keep_audit_days": (0, 36_500),
    "memory_reserve_percent": (0, 90),
    "llm_timeout_s": (1, 3600),
    "calls_per_minute": (1, 1_000_000),
    "calls_per_cell": (1, 1_000_000),
    "llm_max_tokens": (1, 1_000_000),
    "packages_min_age_days": (0, 3650),
    "packages_max_mib": (1, 1024 * 1024),
    "packages_timeout_s": (1, 280),
}
# Those of workbench.services.opening; tests/unit/test_settings.py compares them.
_SERVICES = {
    "llm_provider": ("openai", "anthropic", "local"),
    "search_engine": ("searxng", "brave", "tavily", "exa", "duckduckgo", "wikipedia"),
}


SECRETS = ("database_url", "files_secret_key", "files_session_token", "llm_key", "search_key", "connections_key")
"""settings with something in them that nobody else may see"""
_NOT_FOR_HOSTS = (
    *SECRETS,
    *("toolkits_file", "files_url", "files_endpoint", "files_region", "files_access_key"),
    *("llm_provider", "llm_url", "llm_model", "search_engine", "search_url"),
    *("packages_index", "packages_registry"),
)
# What Amazon's own tools read, for whoever has it set already; the first that is there.
_FROM_AWS = {
    "files_endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "files_region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
}
_KEYS_FROM_AWS = {
    "files_access_key": "AWS_ACCESS_KEY_ID",
    "files_secret_key": "AWS_SECRET_ACCESS_KEY",
    "files_session_token": "AWS_SESSION_TOKEN",
}
# What the tools of those who offer models read, for whoever has it set already.
_KEYS_OF_PROVIDERS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each field is the variable of the same name, in capitals, after WORKBENCH_."""

    data_dir: Path
    """where the host keeps its socket, files, spools and images; 0700"""
    images_dir: Path
    """where images are built; `data_dir`/images unless set, and may be shared between data folders"""
    torch_index: str = "https://download.pytorch.org/whl/cpu"
    """where PyTorch comes from if what pip is configured with has it for graphics cards alone, or not at all"""
    engine: str = "namespace"
    """`namespace`, or `process`, which isolates nothing"""
    min_level: Level = Level.ISOLATED
    """what the host insists on before it starts: `strict`, `isolated` or `open`"""
    pool_size: int = 4
    """sandboxes kept prepared, with a kernel that waits; each costs about 11 MB"""
    preload: bool = True
    """import the image's common libraries once, for all sandboxes; `false` saves 130 MB and two seconds of a start, and
    each kernel imports for itself"""
    spool_max_mib: int = 256
    """how much output is kept of one cell or command, and of one process per stream"""
    cell_limit_max_s: int = 3600
    """the longest time limit that a caller may ask for"""
    runtimes_dir: str = ""
    """a folder with further descriptions of runtimes, which may replace shipped ones by name; empty is none"""
    snapshots_kept: int = 3
    """of one kernel: the newest for a loss, the others for undo"""
    log_level: str = "info"
    """`debug`, `info`, `warning` or `error`"""
    start_host: bool = True
    """start a host when one is needed and none runs"""
    database_url: str = field(default="", repr=False)
    """`postgresql://…` for records in PostgreSQL; empty for the SQLite file of the data folder"""
    files_url: str = ""
    """`s3://bucket/prefix` for files of sessions in an object store; empty for the data folder alone"""
    files_endpoint: str = ""
    """where that store is, if it is not Amazon's; AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL unless set"""
    files_region: str = ""
    """its region; AWS_REGION or AWS_DEFAULT_REGION unless set, and us-east-1 without these"""
    files_access_key: str = ""
    """with `files_secret_key`; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY unless set"""
    files_secret_key: str = field(default="", repr=False)
    """of the access key"""
    files_session_token: str = field(default="", repr=False)
    """of credentials for a while; AWS_SESSION_TOKEN with the other two"""
    listen_host: str = "127.0.0.1"
    """the address that the server listens at"""
    listen_port: int = 8787
    """its port; 0 is one that is free"""
    public_url: str = ""
    """by which others reach the server; empty if that is where it listens"""
    links_url: str = ""
    """by which links to files lead to the server; empty if that is by which it is asked"""
    tls_cert: str = ""
    """the server's certificate, a file in PEM; with `tls_key`"""
    tls_key: str = ""
    """its private key"""
    allow_plain_http: bool = False
    """listen without TLS at an address that others reach"""
    trusted_proxies: str = ""
    """addresses and networks, by commas, whose X-Forwarded- headers are believed"""
    fetch_allow: str = ""
    """addresses and networks, by commas, that URLs of callers may lead to although they are not public"""
    toolkits_allow: str = ""
    """addresses, networks and host names, by commas, where services of toolkits may be although they are not public"""
    toolkits_file: str = ""
    """toolkits to be added, in TOML; read again when it changes"""
    toolkits_shipped: str = "all"
    """which of the toolkits that come with the workbench there are: slugs by commas, `all` or `none`"""
    connections_key: str = field(default="", repr=False)
    """what credentials of connected accounts are sealed with, by commas, the newest first; a file of the data folder
    unless set"""
    corrections: str = DEFAULT_TEXT
    """which mistakes of code are corrected: switches by commas, with `-` to turn one off, or `all`, or `none`"""
    max_body_mib: int = 8
    """of one request to the server"""
    mcp_tools: str = "workbench"
    """families of tools that MCP clients see: `workbench`, `sandbox`, `kernel`, `router`, by commas, or `all`"""
    freeze_after_s: int = 900
    """without use, until a session stands still; 0 is never"""
    end_after_s: int = 43_200
    """without use, until a session's sandbox is ended and only its files are kept; 0 is never"""
    keep_cells_days: int = 30
    """how long cells and their results are kept; 0 is for ever"""
    keep_audit_days: int = 90
    """how long it is kept who did what; 0 is for ever"""
    memory_reserve_percent: int = 10
    """of the machine's memory that is kept free by ending idle sessions, the longest unused first; 0 is none"""
    calls_per_minute: int = 3000
    """that code of one session may make by its helpers, on average"""
    calls_per_cell: int = 5000
    """that one cell or command may make"""
    packages: PackagePolicy = PackagePolicy.SUPPORTED
    """which packages are installed when code asks for them: `off`, `supported`, `popular` or `any`"""
    packages_allow: str = ""
    """names of packages, by commas, that may be installed beside those of the lists"""
    packages_deny: str = ""
    """names of packages, by commas, that are never installed, also not for others that need them"""
    packages_index: str = ""
    """the index that Python packages come from; what the machine's pip is configured with unless set"""
    packages_registry: str = ""
    """the registry that Node packages come from; what the machine's npm is configured with unless set"""
    packages_min_age_days: int = 7
    """how old a release must be to be installed; 0 is no matter"""
    packages_max_mib: int = 2048
    """of one install, unpacked"""
    packages_timeout_s: int = 120
    """for one install; the code that waits for it goes on being limited by its own time"""
    llm_provider: str = ""
    """who answers `invoke_llm`: `openai`, `anthropic` or `local`; empty is nobody"""
    llm_url: str = ""
    """where that is, if it is not the provider's own address"""
    llm_key: str = field(default="", repr=False)
    """for it; OPENAI_API_KEY or ANTHROPIC_API_KEY unless set"""
    llm_model: str = ""
    """the model's name, passed on as it is; for `local` a file"""
    llm_timeout_s: int = 120
    """for one question with everything that belongs to it"""
    llm_max_tokens: int = 8192
    """of one answer, with what the model thinks before it"""
    search_engine: str = ""
    """who answers `web_search`: `searxng`, `brave`, `tavily`, `exa`, `duckduckgo` or `wikipedia`; empty is nobody"""
    search_url: str = ""
    """where that is, if it is not the engine's own address"""
    search_key: str = field(default="", repr=False)
    """for it; some need none"""

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Settings:
        """Read and check all of them.

        Raises:
            InvalidSetting: a name is unknown or a value cannot be used; the message names both.
        """
        given = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
        known = {PREFIX + one.name.upper(): one for one in dataclasses.fields(cls)}
        for name in given:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
                hint = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(known)}"
                raise InvalidSetting(f"no such setting: {name}{hint}", {"setting": name})
        values: dict[str, Any] = {known[name].name: _parsed(name, value) for name, value in given.items()}
        data_dir = values.setdefault("data_dir", default_data_dir(environ))
        values.setdefault("images_dir", data_dir / "images")
        if values.get("files_url"):
            values = _files_from_aws(environ) | values
        if not values.get("llm_key"):
            values["llm_key"] = _key_of_provider(values.get("llm_provider", ""), environ)
        return cls(**values)

    def to_env(self) -> dict[str, str]:
        """The variables that give exactly these settings, for a process that we start."""
        return {PREFIX + one.name.upper(): _text(getattr(self, one.name)) for one in dataclasses.fields(self)}

    def host_env(self) -> dict[str, str]:
        """The same for a host, which has no business with the stores and the services."""
        # BARRIER: the address of a database has a password in it, and a host holds no credential; held by
        # tests/unit/test_settings.py and tests/mounts/test_object_store.py.
        withheld = {PREFIX + one.upper() for one in _NOT_FOR_HOSTS}
        return {name: text for name, text in self.to_env().items() if name not in withheld}


def _files_from_aws(environ: Mapping[str, str]) -> dict[str, Any]:
    """What the environment has for the object store beside our own settings."""
    found: dict[str, Any] = {}
    for setting, names in _FROM_AWS.items():
        name = next((one for one in names if environ.get(one)), None)
        if name is not None:
            found[setting] = _parsed_as(setting, name, environ[name])
    # All of one origin: a key of ours with a token of another's is refused by every store.
    if not any(environ.get(PREFIX + setting.upper()) for setting in _KEYS_FROM_AWS):
        found |= {setting: environ.get(name, "") for setting, name in _KEYS_FROM_AWS.items()}
    return found


def _key_of_provider(provider: str, environ: Mapping[str, str]) -> str:
    name = _KEYS_OF_PROVIDERS.get(provider, "")
    return _word(name, environ.get(name, "")) if name else ""


def default_data_dir(environ: Mapping[str, str]) -> Path:
    """For root the machine's, for others the user's."""
    if os.geteuid() == 0:
        return Path("/var/lib/workbench")
    base = environ.get("XDG_DATA_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".local/share")
    return Path(base) / "workbench"


def _parsed(name: str, text: str) -> Any:
    return _parsed_as(name.removeprefix(PREFIX).lower(), name, text)


def _parsed_as(setting: str, name: str, text: str) -> Any:
    if setting in _NUMBERS:
        return _number(name, text, *_NUMBERS[setting])
    if setting != "packages" and (of_family := _FAMILIES.get(setting.partition("_")[0])):
        return of_family(setting, name, text)
    match setting:
        case "data_dir" | "images_dir":
            return _folder(name, text)
        case "engine" | "log_level":
            return _one_of(name, text, _CHOICES[setting])
        case "min_level" | "packages":
            kind: type[Level] | type[PackagePolicy] = Level if setting == "min_level" else PackagePolicy
            return kind(_one_of(name, text, tuple(kind)))
        case "allow_plain_http" | "preload" | "start_host":
            return _one_of(name, text, _SWITCH) == "true"
        case "tls_cert" | "tls_key" | "runtimes_dir":
            return str(_folder(name, text)) if text else ""
        case "listen_host":
            return _host(name, text)
        case "trusted_proxies" | "fetch_allow":
            return _networks(name, text)
        case "public_url" | "links_url":
            return _web_address(name, text)
        case "mcp_tools":
            return _tool_families(name, text)
        case _:
            return _database(name, text)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _folder(name: str, text: str) -> Path:
    path = Path(text)
    if not path.is_absolute():
        raise InvalidSetting(f"{name} must be an absolute path, not {text!r}", {"setting": name})
    return path


def _one_of(name: str, text: str, allowed: tuple[str, ...]) -> str:
    if text not in allowed:
        raise InvalidSetting(f"{name} must be one of {', '.join(allowed)}, not {text!r}", {"setting": name})
    return text


def _number(name: str, text: str, least: int, most: int) -> int:
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise InvalidSetting(f"{name} must be a number from {least} to {most}, not {text!r}", {"setting": name})
    return int(text)


def _host(name: str, text: str) -> str:
    if not text or text != text.strip() or "/" in text or "://" in text:
        raise InvalidSetting(f"{name} must be an address or a host name, not {text!r}", {"setting": name})
    return text


def _networks(name: str, text: str, *, or_names: bool = False) -> str:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        try:
            ipaddress.ip_network(part)
        except ValueError:
            # What ends with a number is an address that is written wrong.
            if or_names and _NAME.fullmatch(part) and not part.rpartition(".")[2].isdigit():
                continue
            what = "addresses, networks or host names" if or_names else "addresses or networks"
            raise InvalidSetting(
                f"{name} must be {what}, by commas, such as 10.0.0.0/8; not {part!r}", {"setting": name}
            ) from None
    return ",".join(parts)


def _web_address(name: str, text: str) -> str:
    if not text:
        return ""
    try:
        parts = urllib.parse.urlsplit(text)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment or parts.username is not None:
        raise InvalidSetting(f"{name} must be like https://workbench.example.com, not {text!r}", {"setting": name})
    return text.rstrip("/")


def _of_torch(setting: str, name: str, text: str) -> str:
    del setting
    if text.startswith("file:///") and text.isprintable() and not text.endswith(" "):
        return text
    if not text:
        raise InvalidSetting(f"{name} must be the address of a package index, not empty", {"setting": name})
    return _web_address(name, text)


def _tool_families(name: str, text: str) -> str:
    parts = [part.strip().lower() for part in text.split(",") if part.strip()]
    if parts == ["all"]:
        return "all"
    unknown = [part for part in parts if part not in _TOOL_FAMILIES]
    if unknown or not parts:
        raise InvalidSetting(
            f"{name} must be some of {', '.join(_TOOL_FAMILIES)}, by commas, or `all`; not {text!r}", {"setting": name}
        )
    return ",".join(dict.fromkeys(parts))


def _of_corrections(setting: str, name: str, text: str) -> str:
    del setting
    try:
        on = switches_of(text)
        return DEFAULT_TEXT if on == DEFAULT_SWITCHES else text_of(on)
    except InvalidRequest as problem:
        raise InvalidSetting(f"{name}: {problem.message}", {"setting": name}) from None


def _of_toolkits(setting: str, name: str, text: str) -> str:
    match setting:
        case "toolkits_file":
            return str(_folder(name, text)) if text else ""
        case "toolkits_allow":
            return _networks(name, text, or_names=True)
        case _:
            return _slugs(name, text)


def _slugs(name: str, text: str) -> str:
    parts = [part.strip().lower() for part in text.split(",") if part.strip()]
    alone = {"all", "none"} & set(parts)
    if not parts or (alone and len(parts) > 1) or any(not re.fullmatch(r"[a-z0-9_]{1,60}", part) for part in parts):
        raise InvalidSetting(
            f"{name} must be slugs of toolkits, by commas, such as gmail,github; or `all`, or `none`; not {text!r}",
            {"setting": name},
        )
    return ",".join(dict.fromkeys(parts))


def _of_files(setting: str, name: str, text: str) -> str:
    match setting:
        case "files_url":
            return _bucket(name, text)
        case "files_endpoint":
            return _web_address(name, text)
        case _:
            return _word(name, text)


def _of_services(setting: str, name: str, text: str) -> str:
    match setting:
        case "llm_provider" | "search_engine":
            return _one_of(name, text, _SERVICES[setting]) if text else ""
        case "llm_url" | "search_url":
            return _web_address(name, text)
        case _:
            return _word(name, text)


def _of_packages(setting: str, name: str, text: str) -> str:
    if setting in ("packages_index", "packages_registry"):
        return _web_address(name, text)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        if not re.fullmatch(r"@?[A-Za-z0-9][A-Za-z0-9._/-]{0,99}", part):
            raise InvalidSetting(f"{name} must be names of packages, by commas; not {part[:60]!r}", {"setting": name})
    return ",".join(parts)


def _of_connections(setting: str, name: str, text: str) -> str:
    del setting
    return _word(name, text)


_FAMILIES = {
    "files": _of_files,
    "llm": _of_services,
    "search": _of_services,
    "connections": _of_connections,
    "packages": _of_packages,
    "toolkits": _of_toolkits,
    "torch": _of_torch,
    "corrections": _of_corrections,
}


def _bucket(name: str, text: str) -> str:
    bucket, _, prefix = text.removeprefix("s3://").partition("/")
    good = text.startswith("s3://") and re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", bucket)
    if text and (not good or not prefix.isprintable() or any(step in (".", "..") for step in prefix.split("/"))):
        raise InvalidSetting(
            f"{name} must be like s3://bucket/prefix, or be empty for the disk; not {text!r}", {"setting": name}
        )
    return text.rstrip("/")


def _word(name: str, text: str) -> str:
    # Not quoted in the error: it may be a secret.
    if text != text.strip() or not text.isprintable() or not text.isascii():
        raise InvalidSetting(f"{name} must be one word, without spaces around it", {"setting": name})
    return text


def _database(name: str, text: str) -> str:
    # Not quoted in the error: there is a password in it.
    if text and not text.startswith(("postgresql://", "postgres://")):
        raise InvalidSetting(f"{name} must begin with postgresql://, or be empty for SQLite", {"setting": name})
    return text
