"""Adapters of memory systems, a file each. They import their system's package when they are made, and nothing of longspan."""
