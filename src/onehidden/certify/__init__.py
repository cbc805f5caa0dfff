"""Checks of a recovered network: value, threshold, verdict, advice."""
