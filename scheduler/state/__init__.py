"""Step 2: what we believe about the cluster."""
