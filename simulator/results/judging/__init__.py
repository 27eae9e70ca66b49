"""Judging: models and people decide where rules cannot, and their agreement is measured."""
