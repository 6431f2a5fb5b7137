"""Open Workbench: a persistent, isolated place where an agent writes and runs code."""

__version__ = "0.1.0"
__all__ = ["__version__"]
