"""The host: the small long-lived process that owns zygotes, sandboxes and spools. No keys, no web framework."""
