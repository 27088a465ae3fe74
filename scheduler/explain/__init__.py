"""Readers of state that answer why, what if and when; never writers."""
