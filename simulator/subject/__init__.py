"""The agent under test as the engine sees it: its log, costs, replies, snapshots and traces."""
