"""The default engine: Linux namespaces around a clone of a warm interpreter. See ARCHITECTURE.md."""
