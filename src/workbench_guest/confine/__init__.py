"""How a freshly cloned process shuts itself in: mounts, identity, system calls. Decides nothing; follows a plan."""
