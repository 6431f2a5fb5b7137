"""Kernels as the host sees them: our own thin client of the Jupyter protocol, and the relay for attached notebooks."""
