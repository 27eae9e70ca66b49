"""Interop: files, conversations, test definitions, papers and retrieval models from elsewhere."""
