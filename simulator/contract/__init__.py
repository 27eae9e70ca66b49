"""What a scenario and an agent are written against: messages, scripts, the stage, records."""
