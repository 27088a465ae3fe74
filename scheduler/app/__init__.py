"""The composition root: wiring, threads, start and stop order, leadership."""
