"""The `ltm` suite: the eleven scenarios of GoodAI's LTM benchmark (GoodAI, section 3.2)."""
