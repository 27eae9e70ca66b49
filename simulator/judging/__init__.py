"""Judging: models and people who decide what rules cannot, and how far they agree."""
