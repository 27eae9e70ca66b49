"""The `reach` suite: plain facts, recalled at every distance."""
