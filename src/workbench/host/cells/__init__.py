"""Cells and commands in the host: queue, limits, output, results. Kernels themselves are known by their contract."""
