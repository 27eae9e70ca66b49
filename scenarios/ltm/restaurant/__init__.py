"""The `restaurant` scenario, with its parser for a guest's replies."""
