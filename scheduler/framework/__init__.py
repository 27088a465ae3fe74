"""Runs plugins and knows none of them by name."""
