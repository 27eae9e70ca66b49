"""A run's folder, and everything that is read back from it."""
