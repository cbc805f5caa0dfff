"""Where to begin: starting networks for the descent."""

from onehidden.starts.localised import LocalisedStart, localised_start

__all__ = ["LocalisedStart", "localised_start"]
