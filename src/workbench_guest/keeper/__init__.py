"""Beside a program that is a kernel: starts it, carries bytes between it and the host, ends as it ends."""
