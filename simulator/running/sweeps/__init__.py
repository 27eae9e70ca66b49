"""Sweeps: many runs in one folder, played by one process, several, or a Ray cluster."""
