"""The prompt and output of an agent call as a text file in local state, with secrets redacted.

Each line has a prefix: `# ` about the call, `in| ` the prompt, `out| ` and `err| ` the agent's output.
"""

import contextlib
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from agentd.agents.redaction import LineRedactor, Redactor
from agentd.agents.streams import Stream
from agentd.domain import clock

if TYPE_CHECKING:  # listing transcripts does not need it
    from agentd.agents.protocol import AgentBrief

LINE = 64 * 1024  # bytes kept of one line
LIMIT = 64 * 1024 * 1024  # bytes of a whole transcript


class Transcript:
    """Write every line immediately. A write error does not end the run; it is stored in `problem`."""

    def __init__(self, path: Path, redactor: Redactor, limit: int = LIMIT) -> None:
        self._path = path
        self._redactor = redactor
        self._limit = limit
        self._lines: dict[Stream, LineRedactor] = {"out": LineRedactor(redactor), "err": LineRedactor(redactor)}
        self._handle: int | None = None
        self._size = 0
        self._is_full = False
        self.problem: str | None = None

    def __enter__(self) -> Self:
        with self._recording_problem():
            _make_folder(self._path.parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._handle = os.open(self._path, flags, 0o600)
            os.fchmod(self._handle, 0o600)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def start(self, agent: str, brief: "AgentBrief", argv: Sequence[str]) -> None:
        session = f"{brief.resume} (resumed)" if brief.resume else brief.session or "none"
        head = {
            "step": f"{brief.step}, round {brief.round}, number {brief.number}, attempt {brief.attempt}",
            "agent": agent,
            "model": brief.model or "its own default",
            "session": session,
            "time": clock.now_ms(),
            "command": shlex.join(map(self._redactor.clean, argv)).replace("\n", "\\n"),
        }
        prompt = self._redactor.clean(brief.prompt).removesuffix("\n")
        lines = [f"# {name}: {value}" for name, value in head.items()]
        self._write(lines + [f"in| {line}" for line in prompt.split("\n")])

    def line(self, stream: Stream, data: bytes, left_out: int = 0) -> None:
        """Write one line of output, without its newline. `left_out` bytes of it were already cut off."""
        self._write([f"{stream}| {self._cleaned(stream, data, left_out)}"])

    def end(self, ending: str, exit_code: int | None, seconds: float) -> None:
        """Write how the call ended, even if the transcript is full."""
        code = "no exit code" if exit_code is None else f"exit code {exit_code}"
        text = " ".join(self._redactor.clean(ending).split())
        self._put(f"# ended: {text}, {code}, {seconds:.1f} s\n".encode("utf-8", "replace"))

    def _cleaned(self, stream: Stream, data: bytes, beyond: int) -> str:
        redactor = self._lines[stream]
        if len(data) + beyond <= LINE:
            return redactor.clean(data.decode("utf-8", "replace"))
        # A secret that is cut off at the limit is within `reach` of the end, which is dropped.
        reach = self._redactor.reach
        text = redactor.clean(data[: LINE + reach].decode("utf-8", "replace")).encode("utf-8", "replace")
        safe = max(0, len(text) - reach) if len(data) + beyond > LINE + reach else len(text)
        shown = text[: min(safe, LINE)].decode("utf-8", "ignore")
        left_out = len(data) + beyond - len(shown.encode())
        return shown if safe <= LINE and len(data) + beyond <= LINE + reach else f"{shown} [{left_out} bytes left out]"

    def _write(self, lines: list[str]) -> None:
        if self._is_full:
            return
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
        if self._size + len(data) > self._limit:
            self._is_full = True
            data = f"# full: this transcript ends here, after {self._size} bytes\n".encode()
        self._put(data)

    def _put(self, data: bytes) -> None:
        with self._recording_problem():
            while self._handle is not None and data:
                written = os.write(self._handle, data)
                self._size += written
                data = data[written:]

    @contextlib.contextmanager
    def _recording_problem(self) -> Iterator[None]:
        """Record the first error and stop writing: a full disk must not end a run."""
        try:
            yield
        except OSError as error:
            self.problem = self.problem or f"cannot write {self._path}: {error.strerror or error}"
            self._close()

    def _close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            with contextlib.suppress(OSError):
                os.close(handle)


def _make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, accessible only to the owner."""
    missing = [part for part in (folder, *folder.parents) if not part.exists()]
    for part in reversed(missing):
        part.mkdir(mode=0o700, exist_ok=True)


@dataclass(frozen=True)
class TranscriptFile:
    """An existing transcript."""

    path: Path
    run: str
    step: str
    round: int
    number: int
    attempt: int


_NAME = re.compile(r"(?P<step>[a-z0-9-]+)-r(?P<round>\d+)-n(?P<number>\d+)-a(?P<attempt>\d+)\.log")


def transcript_path(
    folder: str,
    run: str,
    step: str,
    round: int,  # noqa: A002 - the term for a step
    number: int,
    attempt: int,
) -> Path:
    """Return the path of a call's transcript in the change's transcript folder."""
    return Path(folder, run, f"{step}-r{round}-n{number}-a{attempt}.log")


def list_transcripts(folder: str) -> list[TranscriptFile]:
    """Return the transcripts of a change, oldest first by modification time."""
    found = []
    for path in Path(folder).glob("*/*.log"):
        if match := _NAME.fullmatch(path.name):
            numbers = (int(match["round"]), int(match["number"]), int(match["attempt"]))
            with contextlib.suppress(FileNotFoundError):  # deleted in the meantime
                found.append(
                    (path.stat().st_mtime_ns, numbers, TranscriptFile(path, path.parent.name, match["step"], *numbers))
                )
    return [transcript for _, _, transcript in sorted(found, key=lambda row: row[:2])]
