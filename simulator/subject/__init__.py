"""What is tested, seen from the engine: its log, costs, replies, snapshots and traces."""
