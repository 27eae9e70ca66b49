"""The `chapterbreak` scenario, with generated novels or published chapters."""
