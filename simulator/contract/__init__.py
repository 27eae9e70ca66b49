"""The interfaces that scenarios and agents are written against: messages, scripts, the stage, records."""
