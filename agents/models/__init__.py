"""Agents that are chat models, and their parts: providers, limits, context windows."""
