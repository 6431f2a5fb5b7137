"""`python -m pip`."""

from __future__ import annotations

import os
import sys

# A folder further up than for the modules beside this package.
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
sys.path.insert(0, _ROOT)
try:
    from workbench_guest.packages import pip_command
finally:
    sys.path.remove(_ROOT)

sys.exit(pip_command.main(sys.argv[1:]))
