"""Sweeps on a Ray cluster, where each run is a task. Only `driver` and `node` import Ray, and only at run time."""
