"""Engines of web search, one file each: how it is asked, and how its answer is read. Sending is left to `asking`."""
