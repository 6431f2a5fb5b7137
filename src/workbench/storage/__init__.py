"""Adapters of contracts.storage: SQLite and the disk for real, memory for tests and throw-away services."""
