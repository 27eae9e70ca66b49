"""CREAM: reproduces the published figures. The method itself is in `longspan.scenarios.cream`."""
