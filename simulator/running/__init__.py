"""Runs: planning, playing, resuming, replaying and scoring."""
