"""Nodes, assigned and assumed pods, and the snapshot a cycle works on."""
