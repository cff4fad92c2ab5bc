"""Steps: each does one piece of work and ends in a result that is on disk before it counts as done."""
