"""Where to begin."""
