"""The scenario `chapterbreak`, on made-up novels or the published chapters."""
