"""Many sessions at once for a long time, every answer checked, kernels killed at random; then a look for leaks."""
