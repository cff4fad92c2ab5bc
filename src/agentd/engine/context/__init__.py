"""What an agent reads before it starts: everything it needs, stated once, bounded in size."""
