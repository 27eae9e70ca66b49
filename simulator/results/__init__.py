"""Results of runs as stored in result.json, and runs loaded with their results."""
