"""Step 3: the scheduling cycle, from pop to assumed pod."""
