"""Formats of logs: what chat programs, libraries and agents write, detected by content and read into one neutral form."""
