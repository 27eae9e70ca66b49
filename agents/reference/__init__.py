"""Reference agents: `oracle`, `silent`, `stateless` and `notebook`."""
