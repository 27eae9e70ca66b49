"""A run's folder and what is read back from it."""
