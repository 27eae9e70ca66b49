"""Suites, specs, plugins and manifests, which say what a run plays, and the gate that decides what may run."""
