"""Logs, metrics, slow-cycle traces."""
