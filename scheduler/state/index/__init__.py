"""Counts kept incrementally, so that a cycle need not walk all pods."""
