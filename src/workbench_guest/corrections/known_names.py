"""Names that everybody means the same thing by. One with two meanings is decided by how it is used, or not at all."""

from __future__ import annotations

from dataclasses import dataclass

MODULE, CALLED, ANY = "module", "called", "any"
"""how a name has to be used: only with attributes that are there; only called, as a base or as a decorator; anyhow"""


@dataclass(frozen=True, slots=True)
class Meaning:
    """One thing that a name can stand for."""

    module: str
    attribute: str = ""
    """of the module; the module itself without"""
    use: str = MODULE

    @property
    def code(self) -> str:
        """As it would be imported."""
        if not self.attribute:
            return f"import {self.module}"
        return f"from {self.module} import {self.attribute}"


_MODULES = [
    "os",
    "sys",
    "re",
    "json",
    "math",
    "random",
    "itertools",
    "functools",
    "collections",
    "pathlib",
    "subprocess",
    "io",
    "csv",
    "shutil",
    "tempfile",
    "base64",
    "hashlib",
    "uuid",
    "statistics",
    "string",
    "textwrap",
    "logging",
    "threading",
    "asyncio",
    "zipfile",
    "pickle",
    "typing",
    "traceback",
    "inspect",
    "operator",
    "decimal",
    "fractions",
    "contextlib",
    "warnings",
    "sqlite3",
    "struct",
    "gzip",
    "html",
    "secrets",
    "platform",
    "heapq",
    "bisect",
    "unicodedata",
    "calendar",
    "difflib",
    "socket",
    "signal",
    "queue",
    "tarfile",
    "mimetypes",
    "hmac",
    "zlib",
    "enum",
    "types",
    "datetime",
    "time",
    "copy",
    "glob",
    "pprint",
    "urllib",
    "requests",
    "collections",
    "configparser",
    "fnmatch",
    "getpass",
    "numbers",
    "weakref",
    "ast",
    "dataclasses",
    "concurrent",
    "multiprocessing",
]
_ALIASES = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot", "sns": "seaborn", "mpl": "matplotlib"}
# Their submodules are not there by themselves.
_WITH_SUBMODULES = {
    "urllib": ("urllib.parse", "urllib.request", "urllib.error"),
    "concurrent": ("concurrent.futures",),
    "os": ("os.path",),
    "collections": ("collections.abc",),
}
_CALLED = {
    "pathlib": "Path PurePath",
    "collections": "defaultdict Counter OrderedDict deque namedtuple",
    "functools": "partial reduce lru_cache wraps",
    "itertools": "combinations permutations groupby islice",
    "dataclasses": "dataclass asdict",
    "concurrent.futures": "ThreadPoolExecutor ProcessPoolExecutor as_completed",
    "datetime": "datetime timedelta timezone",
    "decimal": "Decimal",
    "io": "StringIO BytesIO",
    "time": "time sleep perf_counter",
    "copy": "copy deepcopy",
    "glob": "glob",
    "pprint": "pprint",
    "textwrap": "dedent",
    "threading": "Thread",
    "enum": "Enum",
    "abc": "ABC abstractmethod",
    "contextlib": "contextmanager suppress",
    "urllib.parse": "urlparse urlencode urljoin",
    "bs4": "BeautifulSoup",
}
_ANYHOW = {"typing": "Optional List Dict Tuple Union Any TypedDict NamedTuple Literal"}
# Of this cell only: what other languages call them.
CONSTANTS = {"true": True, "false": False, "null": None}
LANGUAGE_WORDS = frozenset({"python", "py", "python3"})


def _meanings() -> dict[str, tuple[Meaning, ...]]:
    found: dict[str, list[Meaning]] = {}
    for name in dict.fromkeys(_MODULES):
        found.setdefault(name, []).append(Meaning(name))
    for name, module in _ALIASES.items():
        found.setdefault(name, []).append(Meaning(module))
    for use, table in ((CALLED, _CALLED), (ANY, _ANYHOW)):
        for module, names in table.items():
            for name in names.split():
                found.setdefault(name, []).append(Meaning(module, name, use))
    return {name: tuple(meanings) for name, meanings in found.items()}


MEANINGS = _meanings()
NAMES = frozenset(MEANINGS) | frozenset(CONSTANTS) | LANGUAGE_WORDS


def parts_of(module: str) -> tuple[str, ...]:
    """What has to be imported with it."""
    return _WITH_SUBMODULES.get(module, ())
