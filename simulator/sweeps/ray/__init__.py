"""Sweeps on a Ray cluster: runs as tasks. Only `driver` and `node` import Ray, and only when they run."""
