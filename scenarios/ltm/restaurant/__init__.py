"""The scenario `restaurant`, and how a guest's orders are read."""
