"""The Python kernel: a stock ipykernel, built once in the zygote and given sockets in each fork.

What differs from stock, and why, is in docs/decisions/0004-one-ipykernel-built-before-the-fork.md.
"""
