"""Filler: distraction that belongs to no test, and its sources."""
