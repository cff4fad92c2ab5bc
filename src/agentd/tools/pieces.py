"""Long text, answered piece by piece."""

LINES = 2000
CHARACTERS = 100_000


def piece(text: str, offset: int, limit: int) -> str:
    """Lines from `offset` on, as they are; if there is more, a last line says where to go on."""
    lines = text.split("\n")
    ended = lines[-1] == ""
    total = len(lines) - ended
    first = offset - 1
    chosen: list[str] = []
    room = CHARACTERS
    for line in lines[first : min(first + limit, total)]:
        if len(line) + 1 > room:
            if not chosen:
                chosen.append(line[:CHARACTERS] + f" [line {offset} has {len(line)} characters; the rest is cut]")
            break
        chosen.append(line)
        room -= len(line) + 1
    last = first + len(chosen)
    if last >= total:
        return "\n".join(chosen) + ("\n" if ended and chosen else "")
    return "\n".join([*chosen, f"[lines {offset}-{last} of {total}; go on with offset {last + 1}]"])
