"""What holds a sandbox to its tier: control groups v1 or v2, or rlimits with a watchdog. Chosen by trying."""
