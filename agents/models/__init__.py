"""Agents that are chat models, and what they are built from: providers, limits, context windows."""
