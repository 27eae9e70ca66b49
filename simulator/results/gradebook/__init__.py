"""Grades: folds each transcript of a run once and grades each test once."""
