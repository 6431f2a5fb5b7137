"""Benches: peers side by side in one run, a verdict a row."""
