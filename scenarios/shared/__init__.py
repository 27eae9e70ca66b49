"""Helpers and data that scenarios of several suites share."""
