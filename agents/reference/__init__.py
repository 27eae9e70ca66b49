"""Reference agents: `oracle`, `silent` and `notebook`."""
