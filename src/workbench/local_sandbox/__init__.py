"""What a box that the user runs needs: the helpers as one Python file, and the variables that they read."""

from workbench.local_sandbox.bundle import HELPER_FILE, helper_source
from workbench.local_sandbox.variables import ENV_FILE, env_file, variables

__all__ = ["ENV_FILE", "HELPER_FILE", "env_file", "helper_source", "variables"]
