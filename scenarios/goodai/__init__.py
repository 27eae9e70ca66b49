"""GoodAI's published LTM benchmark: read its files, play its tests, and grade its transcripts again."""
