"""Tools by the names that people know, with plain arguments: each is one or a few of the generated ones."""
