"""Money as people read it."""


def told(usd: float) -> str:
    """To the cent, and finer below one."""
    return f"{usd:.2f} USD" if usd >= 0.01 or not usd else f"{usd:.4f} USD"
