"""Transcripts: what was told and said is in the file at once, without secrets, bounded, and never the end of a run."""

import os
import resource
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from briefs import brief

from agentd.agents.redaction import Redactor
from agentd.agents.transcript import LINE, Transcript, TranscriptFile, list_transcripts, transcript_path
from agentd.project.layout import find_project
from program import PATIENCE
from scenario import Scenario

SECRET = "correct-horse-battery-staple"
REDACTOR = Redactor({"MY_API_KEY": SECRET})


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def written(path: Path, *lines: bytes, stream: str = "out") -> list[str]:
    with Transcript(path, REDACTOR) as transcript:
        for line in lines:
            transcript.line("out" if stream == "out" else "err", line)
    assert transcript.problem is None
    return path.read_text().splitlines()


def test_transcript_records_a_call_from_start_to_end(tmp_path: Path) -> None:
    path = tmp_path / "t.log"
    call = brief(tmp_path, prompt=f"Plan it.\n\nout| with {SECRET}\n", model="m-1", session="s-1", round=2, attempt=3)
    with Transcript(path, REDACTOR) as transcript:
        transcript.start("gemini", call, ["gemini", "--key", SECRET, "two words\nand a line"])
        transcript.line("out", b'{"type": "text"}')
        transcript.line("err", b"a warning")
        transcript.end("done", 0, 12.345)
    lines = path.read_text().splitlines()
    time = lines.pop(4)
    assert time.startswith("# time: 20") and time.endswith("Z")
    assert lines == [
        "# step: proposal-gen, round 2, number 1, attempt 3",
        "# agent: gemini",
        "# model: m-1",
        "# session: s-1",
        r"# command: gemini --key '[redacted]' 'two words\nand a line'",
        "in| Plan it.",
        "in| ",
        "in| out| with [redacted]",
        'out| {"type": "text"}',
        "err| a warning",
        "# ended: done, exit code 0, 12.3 s",
    ]


def test_transcript_shows_resumed_session_and_missing_values(tmp_path: Path) -> None:
    with Transcript(tmp_path / "t.log", REDACTOR) as transcript:
        transcript.start("codex", brief(tmp_path, resume="r-1", session="s-1"), ["codex"])
        transcript.end("killed", None, 1)
    text = (tmp_path / "t.log").read_text()
    assert "# session: r-1 (resumed)\n" in text and "# model: its own default\n" in text
    assert text.endswith("# ended: killed, no exit code, 1.0 s\n")


def test_transcript_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = tmp_path / "room" / "transcripts" / "add-oauth" / "t.log"
        written(path, b"x")
    finally:
        os.umask(before)
    assert mode(path) == 0o600
    assert [mode(folder) for folder in list(path.parents)[:3]] == [0o700] * 3


def test_each_line_is_written_immediately(tmp_path: Path) -> None:
    path = tmp_path / "t.log"
    with Transcript(path, REDACTOR) as transcript:
        for number in range(3):
            transcript.line("out", b"line %d" % number)
            assert path.read_text().endswith(f"out| line {number}\n")


def test_invalid_utf8_is_replaced(tmp_path: Path) -> None:
    lines = written(tmp_path / "t.log", b"\xff\xfe caf\xc3\xa9 \xed\xa0\x80")
    assert lines == ["out| �� café ���"]


def test_agent_output_cannot_imitate_other_line_types(tmp_path: Path) -> None:
    assert written(tmp_path / "t.log", b"one", b"# ended: done", b"") == ["out| one", "out| # ended: done", "out| "]


def test_omitted_bytes_of_a_line_are_counted(tmp_path: Path) -> None:
    with Transcript(tmp_path / "t.log", REDACTOR) as transcript:
        transcript.line("out", b"x" * 2 * LINE, left_out=1_000_000)
    text = (tmp_path / "t.log").read_text()
    assert text.startswith("out| xxx")
    assert f"[{LINE + 1_000_000} bytes left out]" in text


def test_existing_transcript_is_appended_to(tmp_path: Path) -> None:
    written(tmp_path / "t.log", b"one")
    assert written(tmp_path / "t.log", b"two") == ["out| one", "out| two"]


@pytest.mark.parametrize("stream", ["out", "err"])
def test_multiline_private_key_is_redacted(tmp_path: Path, stream: str) -> None:
    key = [b"-----BEGIN PRIVATE KEY-----", b"MIIEvQIBADANBgkqhkiG9w0BAQEF", b"-----END PRIVATE KEY-----", b"on we go."]
    lines = written(tmp_path / "t.log", *key, stream=stream)
    assert lines == [*[f"{stream}| [redacted]"] * 3, f"{stream}| on we go."]


# ---- long lines


def test_line_of_64_kb_is_kept_whole(tmp_path: Path) -> None:
    assert written(tmp_path / "t.log", b"x" * LINE) == [f"out| {'x' * LINE}"]


def test_longer_line_is_truncated_and_the_omitted_bytes_are_counted(tmp_path: Path) -> None:
    assert written(tmp_path / "t.log", b"x" * (LINE + 5)) == [f"out| {'x' * LINE} [5 bytes left out]"]
    (line,) = written(tmp_path / "u.log", b"x" * 5_000_000)
    assert line == f"out| {'x' * LINE} [{5_000_000 - LINE} bytes left out]"


def test_multibyte_character_is_not_split(tmp_path: Path) -> None:
    (line,) = written(tmp_path / "t.log", b"x" + "é".encode() * LINE)
    assert line == f"out| x{'é' * (LINE // 2 - 1)} [{LINE + 2} bytes left out]"


@pytest.mark.parametrize("length", [LINE + 10, LINE + 16 * 1024, 200_000])
def test_no_partial_secret_remains_wherever_the_line_is_cut(tmp_path: Path, length: int) -> None:
    secret = SECRET.encode()
    for start in range(LINE - len(secret) - 2, LINE + 3):
        path = tmp_path / f"{start}.log"
        line = (b"x" * start + secret).ljust(length, b"y")
        (text,) = written(path, line)
        assert "corr" not in text and "stap" not in text


def test_no_partial_secret_remains_when_redaction_shortens_the_line(tmp_path: Path) -> None:
    """Secrets before it are taken out, so that the end of what was looked at moves to the front."""
    secret = SECRET.encode() + b" "
    for shift in range(0, len(secret), 3):
        (text,) = written(tmp_path / f"{shift}.log", b"x" * shift + secret * 10_000)
        assert "corr" not in text.replace("[redacted]", "") and "horse" not in text


def test_no_partial_secret_remains_when_the_line_is_only_secrets(tmp_path: Path) -> None:
    secret = "correct-horse-" * 860
    with Transcript(tmp_path / "t.log", Redactor({"MY_API_KEY": secret})) as transcript:
        transcript.line("out", secret.encode() * 100)
    assert "correct" not in (tmp_path / "t.log").read_text()


def test_line_that_is_short_after_redaction_is_not_marked_truncated(tmp_path: Path) -> None:
    secret = SECRET.encode() + b" "
    count = LINE // len(secret) + 1
    assert written(tmp_path / "t.log", secret * count) == [f"out| {'[redacted] ' * count}".rstrip("\n")]


# ---- bounds and trouble


def test_full_transcript_says_so_once_and_still_records_the_end(tmp_path: Path) -> None:
    path = tmp_path / "t.log"
    with Transcript(path, REDACTOR, limit=100) as transcript:
        for _ in range(50):
            transcript.line("out", b"0123456789")
        transcript.end("done", 0, 1)
    lines = path.read_text().splitlines()
    assert lines == [
        *["out| 0123456789"] * 6,
        "# full: this transcript ends here, after 96 bytes",
        "# ended: done, exit code 0, 1.0 s",
    ]
    assert transcript.problem is None


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from agentd.agents.redaction import Redactor
from agentd.agents.transcript import Transcript
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
with Transcript(Path(sys.argv[1]), Redactor({})) as transcript:
    for _ in range(int(sys.argv[2])):
        transcript.line("out", b"x" * int(sys.argv[3]))
sys.stdout.write(transcript.problem or "no problem")
"""


@pytest.mark.parametrize(("lines", "length"), [(100, 90), (1, 2000)])
def test_full_disk_is_recorded_as_a_problem_and_does_not_fail(tmp_path: Path, lines: int, length: int) -> None:
    path = tmp_path / "t.log"
    argv = [sys.executable, "-c", FULL_DISK, str(path), str(lines), str(length)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"cannot write {path}: File too large"
    assert path.stat().st_size == 1000


def test_folder_that_cannot_be_created_is_recorded_as_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with Transcript(tmp_path / "file" / "t.log", REDACTOR) as transcript:
        transcript.start("gemini", brief(tmp_path), ["gemini"])
        transcript.line("out", b"x")
        transcript.end("done", 0, 1)
    assert transcript.problem == f"cannot write {tmp_path}/file/t.log: Not a directory"


def test_symlink_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("mine")
    (tmp_path / "t.log").symlink_to(tmp_path / "elsewhere")
    with Transcript(tmp_path / "t.log", REDACTOR) as transcript:
        transcript.line("out", b"x")
    assert transcript.problem and (tmp_path / "elsewhere").read_text() == "mine"


def test_concurrent_threads_write_whole_lines(tmp_path: Path) -> None:
    with Transcript(tmp_path / "t.log", REDACTOR) as transcript:

        def write(name: str) -> None:
            for _ in range(500):
                transcript.line("out" if name == "out" else "err", name.encode() * 20)

        threads = [threading.Thread(target=write, args=(name,)) for name in ("out", "err")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    lines = (tmp_path / "t.log").read_text().splitlines()
    assert sorted(lines) == [f"err| {'err' * 20}"] * 500 + [f"out| {'out' * 20}"] * 500


def test_no_file_descriptor_stays_open(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        for number in range(400):
            written(tmp_path / f"{number}.log", b"x")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# ---- finding them


def test_transcripts_are_listed_in_chronological_order(project: Scenario) -> None:
    here = find_project()
    calls = [
        ("20260119T103000Z-5f1c", "proposal-gen", 1, 1, 1),
        ("20260119T103000Z-5f1c", "spec-gen-auth-flow", 1, 1, 9),
        ("20260119T103000Z-5f1c", "spec-gen-auth-flow", 1, 1, 10),
        ("20260119T103000Z-0000", "challenge", 2, 1, 1),
    ]
    for place, call in enumerate(calls):
        path = transcript_path(here.local_state_path("transcripts", "add-oauth"), *call)
        written(path, b"x")
        os.utime(path, ns=(0, 1_000_000 + place * 1000))
    written(transcript_path(here.local_state_path("transcripts", "other"), *calls[0]), b"x")
    (path.parent / "notes.log").write_text("not one of ours")
    found = list_transcripts(here.local_state_path("transcripts", "add-oauth"))
    assert [(one.run, one.step, one.round, one.number, one.attempt) for one in found] == calls
    assert found[-1] == TranscriptFile(path, *calls[-1])
    assert path == project.root / ".git/agentd/transcripts/add-oauth/20260119T103000Z-0000/challenge-r2-n1-a1.log"


def test_change_without_calls_has_no_transcripts(project: Scenario) -> None:
    assert list_transcripts(find_project().local_state_path("transcripts", "add-oauth")) == []


def test_listing_transcripts_does_not_import_config(box: Scenario) -> None:
    code = "import sys, agentd.agents.transcript; sys.exit('agentd.project.config' in sys.modules)"
    assert box.python(code).code == 0
