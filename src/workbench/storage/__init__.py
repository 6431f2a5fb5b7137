"""Adapters of contracts.storage: SQLite, PostgreSQL and the disk for real, memory for tests and throw-away services."""
