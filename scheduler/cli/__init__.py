"""The podium command."""
