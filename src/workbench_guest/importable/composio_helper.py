"""The helpers under the name that scripts for Composio's workbench know. The same as `workbench_helper`."""

from __future__ import annotations

import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
# For this import only: what else lies there is not the agent's.
sys.path.insert(0, _ROOT)
try:
    from workbench_guest import helpers as _helpers
finally:
    sys.path.remove(_ROOT)

_offered = _helpers.offered(os.environ)
globals().update(_offered)
__all__ = list(_offered)
__getattr__ = _helpers.why_missing(__name__)
