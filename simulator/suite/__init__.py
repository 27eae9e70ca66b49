"""What is played: suites, specs, plugins, manifests and what may run."""
