"""The arena: systems ranked by judging pairs of their summaries by key facts (CREAM, section 4)."""
