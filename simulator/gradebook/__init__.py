"""Grades: a run's transcripts, folded once, and its tests, graded once."""
