"""Where to begin: starting networks for the descent."""
