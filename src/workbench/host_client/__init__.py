"""How the CLI, and later the server, reach a host: find it, start it, agree on a version, ask."""
