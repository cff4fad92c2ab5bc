"""What an agent reads before it begins: everything it needs, once, bounded in size."""
