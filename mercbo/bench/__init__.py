"""Measurements: what the command line's `mercbo bench` runs."""
