"""Agents that give a model long-term memory."""
