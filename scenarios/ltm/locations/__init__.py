"""The scenario `locations`, and how directions in a reply are read."""
