"""A Jupyter kernel for Bash on nothing but pyzmq: cells run in one shell, which keeps what they define."""
