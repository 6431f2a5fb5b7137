"""Toolkits that come with the workbench: compiled from what providers publish by `scripts/compile-toolkits`."""
