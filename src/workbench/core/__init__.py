"""The service itself, written against contracts only: what every door offers, and the story of a session."""
