"""Interop: other people's files, conversations, test definitions, papers and retrieval models."""
