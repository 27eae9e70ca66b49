"""The scenario `locations`, and its reader of directions."""
