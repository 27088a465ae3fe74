"""Typed, frozen values of Kubernetes objects: no I/O, no policy."""
