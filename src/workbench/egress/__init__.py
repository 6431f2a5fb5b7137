"""Requests that leave this machine on somebody's word: where they may go, and that they go there and nowhere else."""
