"""The runtimes that are shipped, a file each, and those that an operator adds in a folder."""
