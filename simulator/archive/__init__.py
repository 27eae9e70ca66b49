"""Run folders, and the records read from them."""
