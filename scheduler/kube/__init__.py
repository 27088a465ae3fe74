"""The only place that speaks HTTP to the API server."""
