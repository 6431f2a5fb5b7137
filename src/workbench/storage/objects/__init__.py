"""Mounts in an S3-compatible store, with a folder of this machine as the working copy."""
