"""Building and finding runtime images: a virtual environment from a recipe's lock, named by what went into it."""
