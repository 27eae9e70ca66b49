"""How a conversation is played: the conductor, the look-ahead and the loop."""
