"""Texts kept as files. AGENTD_TEST_RECORD=1 writes them anew; one that is not there fails."""

import os
from pathlib import Path

DATA = Path(__file__).parent / "data"


def check(name: str, text: str) -> None:
    file = DATA / name
    if os.environ.get("AGENTD_TEST_RECORD") == "1":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert file.is_file(), f"{name} is not there: look at the text, and keep it with AGENTD_TEST_RECORD=1"
    assert text == file.read_text(), f"{name} reads otherwise: if that is meant, keep it with AGENTD_TEST_RECORD=1"
