"""Step 4: the binding cycle, from assumed pod to a settled outcome."""
