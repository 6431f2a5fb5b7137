"""The kernel of R: libR in a process of the image's Python, which speaks the Jupyter protocol for it.

What a cell does is done by R; pictures, tables and errors are made in the .R files; Python only carries.
"""
