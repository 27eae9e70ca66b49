"""The `locations` scenario, with its parser for directions."""
