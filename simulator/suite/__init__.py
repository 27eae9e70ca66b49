"""Suites, specs, plugins and manifests, which define a run, and the gate that decides which code may run."""
