"""What is wrong with a document, as data: a rule turns it into a finding."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """Where it is, which kind it is, and in a sentence what is wrong and what would be right."""

    line: int
    rule: str
    message: str
