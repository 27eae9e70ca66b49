"""Agents that are models with tools, which they call themselves while they talk."""
