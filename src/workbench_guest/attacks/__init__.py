"""The attacks of the proof, one small function each. The same function runs in a sandbox and, as its control, outside.

Standard library only, and nothing here decides whether an attack got through: that is `workbench.doctor`'s.
"""
