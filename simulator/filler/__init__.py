"""Filler: distraction that belongs to no test, and the sources it is drawn from."""
