"""One folder or file per way of isolating."""
