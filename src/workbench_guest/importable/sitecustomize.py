"""Run by every Python of a sandbox at its start: packages that are missing are found, in programs as in cells."""

from __future__ import annotations

import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
# For this import only: what else lies there is not the agent's.
sys.path.insert(0, _ROOT)
try:
    from workbench_guest import font_cache as _font_cache
    from workbench_guest import packages as _packages

    _font_cache.begin()
    _packages.begin()
finally:
    sys.path.remove(_ROOT)
