"""What GoodAI published of its LTM benchmark: reading its files, playing its tests, and grading its transcripts again."""
