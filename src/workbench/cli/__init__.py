"""One file per command. Translates, and decides nothing; the only place that prints."""
