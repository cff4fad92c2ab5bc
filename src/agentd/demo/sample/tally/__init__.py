"""Who owes what in a group that spends together. Amounts are whole cents."""
