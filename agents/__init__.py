"""The agents that come with longspan: one file per kind, found by entry point in the group `longspan.agents`."""

__longspan__ = True
"""Tells this package from others of the same name: openai-agents also installs a top-level package `agents`."""
