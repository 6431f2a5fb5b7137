"""Run by table_check on the image's interpreter: imports modules, and says how it went and what was loaded.

Standard library only. The first argument is a folder that comes last on the path, as a session's packages do.
"""

import importlib
import io
import json
import os
import sys
import time
import warnings

# A part of Python that a slim Debian has not: a package that cannot do without it is of no use in a sandbox.
for _absent in ("tkinter", "_tkinter", "turtle"):
    sys.modules[_absent] = None  # type: ignore[assignment]  # how the import system is told that there is none


def _loaded_libraries() -> list[str]:
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split()[-1] for line in maps}
    return sorted({os.path.basename(path) for path in paths if path.startswith(("/usr/", "/lib")) and ".so" in path})


def main(folder: str, modules: list[str]) -> None:
    """Write the findings as one line of JSON to the first stdout; what packages print does not come into it."""
    sys.path.append(folder)
    answer, sys.stdout = sys.stdout, io.StringIO()
    warnings.simplefilter("ignore")
    wrong = {}
    began = time.process_time()
    for name in modules:
        try:
            importlib.import_module(name)
        except BaseException as problem:  # noqa: BLE001 -- whatever a package raises is the finding
            wrong[name] = " ".join(f"{type(problem).__name__}: {problem}".split())[:300]
    found = {"wrong": wrong, "seconds": time.process_time() - began, "libraries": _loaded_libraries()}
    answer.write("\n" + json.dumps(found) + "\n")
    answer.flush()
    # Threads that a package started must not hold up the answer.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
