"""The in-tree plugins; IN_TREE is the one table of them."""
