"""Live profiles: kopf handlers for our custom resources."""
