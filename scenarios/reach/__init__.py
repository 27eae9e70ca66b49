"""The suite `reach`: plain facts at every distance."""
