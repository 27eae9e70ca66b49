"""Judging: models and people decide what rules cannot, and how far they agree is measured."""
