"""Controllers of our own resources: live profiles. The only package that may import kopf, and it does so lazily."""
