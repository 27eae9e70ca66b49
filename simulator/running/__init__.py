"""Runs: planned, played, resumed, replayed and scored."""
