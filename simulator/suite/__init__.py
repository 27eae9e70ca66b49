"""Suites, specs, plugins and manifests, which define the contents of a run, and the gate that decides what may run."""
