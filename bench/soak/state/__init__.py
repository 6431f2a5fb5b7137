"""The soak of a memory that is kept: lost by every road, restored, undone, branched; every value checked."""
