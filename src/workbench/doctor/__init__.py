"""What this machine can do, found out by doing it; and a proof of the isolation by attacking it."""
