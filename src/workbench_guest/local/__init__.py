"""What differs for a helper in a box of the user's own: calls over HTTP, and files that are sent instead of copied.

These modules are never imported: `workbench.local_sandbox` puts them and those of `helpers` that stay as they are into
one file. There the names that `helpers.calling` has are those of `calling` here.
"""
