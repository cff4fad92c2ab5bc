"""One agent call, from the brief to what it cost: attempts, money, the guard around it, and what is kept of it."""
