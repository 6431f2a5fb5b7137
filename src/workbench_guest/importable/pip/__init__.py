"""Stands where pip would: `python -m pip` installs through the workbench."""
