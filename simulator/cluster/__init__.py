"""Sweeps over many machines: runs as tasks of Ray. Only `driver` and `node` know of Ray, and it is imported when they run."""
