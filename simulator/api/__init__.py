"""longspan from Python: runs as calls, and their results as objects. The public names are in `longspan`."""
