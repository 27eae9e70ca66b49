"""Tools around a run: checking an agent, estimating cost, rehearsing a test."""
