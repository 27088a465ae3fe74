"""Step 1: a watch event becomes a change of state."""
