"""Fetch the scripts of the viewer's pages by npm, as package.json pins them, with the licences of all they hold."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PINNED = Path(__file__).with_name("package.json")
TARGET = PINNED.parent.parent / "src" / "agentd" / "web" / "static" / "vendor"
LICENCES = "LICENCES.txt"
LONGEST = 120  # seconds for npm, which keeps trying for minutes where no registry answers


def main() -> int:
    """Without npm or a network the pages do without the scripts, unless AGENTD_VENDOR_REQUIRED=1."""
    wanted: dict[str, str] = json.loads(PINNED.read_text())["sha256"]
    if all(digest(TARGET / Path(name).name) == pinned for name, pinned in wanted.items()) and licences().is_file():
        return 0
    print("Fetching the viewer's scripts", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        modules = Path(folder) / "node_modules"
        if problem := installed(Path(folder)):
            print(f"They were not fetched, so its pages go without htmx and mermaid: {problem}", file=sys.stderr)
            return 1 if os.environ.get("AGENTD_VENDOR_REQUIRED") == "1" else 0
        for name, pinned in wanted.items():
            if digest(modules / name) != pinned:
                print(f"{name} is not the one that vendoring/package.json pins, so it is not used.", file=sys.stderr)
                return 1
        copy(modules, wanted)
    return 0


def installed(folder: Path) -> str:
    """What went wrong; empty if they are there. No script of a package is run."""
    npm = shutil.which("npm")
    if not npm:
        return "npm is not installed"
    shutil.copy(PINNED, folder / "package.json")
    options = ["--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=silent"]
    options += ["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=20000", "--no-update-notifier"]
    argv, quiet = [npm, "install", "--prefix", str(folder), *options], subprocess.DEVNULL
    try:
        code = subprocess.run(argv, cwd=folder, stdout=quiet, stderr=quiet, timeout=LONGEST, check=False).returncode
    except subprocess.TimeoutExpired:
        return f"npm had not ended after {LONGEST} seconds"
    return "" if code == 0 else f"npm ended with {code}"


def copy(modules: Path, wanted: dict[str, str]) -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    licences().write_text("\n\n".join(terms(modules)), encoding="utf-8")
    for name in wanted:
        made = TARGET / f".{Path(name).name}.{os.getpid()}"
        shutil.copyfile(modules / name, made)
        made.replace(TARGET / Path(name).name)  # whole, should two fetch at once


def licences() -> Path:
    return TARGET / LICENCES


def terms(modules: Path) -> list[str]:
    """A built script holds the packages it needs, so their terms come along."""
    found = []
    for described in sorted([*modules.glob("*/package.json"), *modules.glob("@*/*/package.json")]):
        told = json.loads(described.read_text())
        texts = sorted(described.parent.glob("[Ll][Ii][Cc][Ee][Nn][SsCc][Ee]*"))
        words = [one.read_text(encoding="utf-8", errors="replace").strip() for one in texts if one.is_file()]
        found.append("\n\n".join([f"{told['name']} {told['version']}: {told.get('license', 'see its text')}", *words]))
    return found


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


if __name__ == "__main__":
    sys.exit(main())
