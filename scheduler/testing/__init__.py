"""Public test tools for plugin authors: builders, fakes, harness, embedded API server."""
