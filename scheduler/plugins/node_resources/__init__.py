"""NodeResourcesFit and NodeResourcesBalancedAllocation: what nodes have left, and how evenly it is used."""
