"""Adapters of memory systems, one per file. Each imports its system's package when it is created, and never longspan."""
