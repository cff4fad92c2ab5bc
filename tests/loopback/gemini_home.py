"""A home in which a person uses Gemini CLI with settings of their own; its model is the scripted one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loopback.model import Conversation

KEY = "dummy-key-of-a-person"
SETTINGS: Mapping[str, Any] = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "ui": {"theme": "GitHub"},
}


def gemini_home(home: Path, conversation: Conversation | None, **more: Any) -> Path:
    """The person's settings.json, and the way to their model in .env beside it."""
    folder = home / ".gemini"
    folder.mkdir(parents=True, exist_ok=True)
    base = conversation.base if conversation else "http://127.0.0.1:9"  # the discard port: nobody listens
    (folder / ".env").write_text(f"GEMINI_API_KEY={KEY}\nGOOGLE_GEMINI_BASE_URL={base}\n")
    path = folder / "settings.json"
    path.write_text(json.dumps({**SETTINGS, **more}, indent=2) + "\n")
    return path
