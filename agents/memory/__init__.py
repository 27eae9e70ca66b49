"""Agents with a long-term memory around a model."""
