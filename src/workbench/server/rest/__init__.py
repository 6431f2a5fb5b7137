"""The routes under /v1, one file per resource."""
