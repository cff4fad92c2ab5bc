"""An expense in parts that add up to it."""

from collections.abc import Sequence


def split_equally(amount: int, people: Sequence[str]) -> dict[str, int]:
    """Equal parts; the cents that cannot be divided go to the first people, one each."""
    if not people:
        raise ValueError("an expense needs at least one person")
    part, left = divmod(amount, len(people))
    return {person: part + (place < left) for place, person in enumerate(people)}
