"""Shapes that cross process borders: plain values, typed, checked when they are read."""
