"""Checks with value, threshold, verdict, advice."""
