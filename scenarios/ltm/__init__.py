"""The eleven scenarios of the suite `ltm` (GoodAI, section 3.2)."""
