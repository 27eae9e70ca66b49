"""The scenario `restaurant`, and its reader of a guest's replies."""
