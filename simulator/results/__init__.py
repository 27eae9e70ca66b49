"""Results: what a run came to, as result.json has it, and runs with their results."""
