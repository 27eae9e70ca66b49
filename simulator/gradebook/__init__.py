"""Grades: folds a run's transcripts once and grades its tests once."""
