"""The record of a run: events, the journal that keeps them, and the one fold that reads it."""
