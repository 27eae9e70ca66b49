"""Agents outside longspan: servers, programs, Python classes and people."""
