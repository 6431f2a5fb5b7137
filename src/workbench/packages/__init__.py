"""Packages that are installed while code runs: the lists of what may be, and who installs it, for each language."""
