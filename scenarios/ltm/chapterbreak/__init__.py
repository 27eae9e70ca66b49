"""The scenario `chapterbreak`: made-up novels or published chapters."""
