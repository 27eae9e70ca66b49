"""The arena: summaries of the same sources in pairs, judged by their key facts, and rated (CREAM, section 4)."""
