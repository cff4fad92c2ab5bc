"""A wheel brings the scripts of the viewer's pages, which are fetched when it is built."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class VendorHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # a clone: its Makefile fetches them, in sight of who waits
        subprocess.run([sys.executable, str(Path(self.root) / "vendoring" / "fetch.py")], check=True)
