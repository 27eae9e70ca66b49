"""Agents outside longspan: servers, programs, users' Python classes and people."""
