"""Tools as agents find and run them: what there is, what of it a session may use, and the tools that lead to others."""
