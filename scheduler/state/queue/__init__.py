"""Pending pods: active, in back-off, unschedulable, gated, in flight, nominated."""
