"""The record of a run: events, their journal, and the transcript folded from it."""
