"""Calls from inside: a door for each sandbox, and the desk where clients take them up."""
