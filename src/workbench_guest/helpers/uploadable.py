"""What is to be uploaded: the paths that a caller gave, checked."""

from __future__ import annotations

import os
from typing import Any

from workbench_guest.helpers.paths import as_text, file_problem, located, missing

# What is not whole yet is called so, and never packed.
UNFINISHED = ".uploading-"


def checked_paths(given: tuple[Any, ...]) -> tuple[list[str], str]:
    """Whole paths of what is there; or what is wrong with one of them."""
    if not given:
        return [], "nothing to upload: give the path of a file, or several"
    paths = []
    for number, one in enumerate(given, 1):
        name = "file_paths" if len(given) == 1 else f"file_paths ({number} of {len(given)})"
        if isinstance(one, (list, tuple, set)):
            return [], f"{name} is a {type(one).__name__}: give paths one by one, as in upload_local_file(*paths)"
        text, problem = as_text(name, one)
        if problem:
            return [], problem
        path = located(text)
        if not os.path.exists(path):
            return [], missing(path, text)
        if not os.path.isdir(path) and (problem := file_problem(name, path, text)):
            return [], problem
        paths.append(path)
    return paths, ""
