"""The Messages API of Anthropic, as Claude Code speaks it."""

import itertools
import json
from collections.abc import Mapping
from typing import Any

from loopback.model import Call, Request, Turn, sse

TOOLS = "mcp__agentd__"  # how Claude's model names the tools of our server
OWN = ("Read", "Grep", "Glob", "Edit", "Write", "Bash")
KINDS = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error"}

_NUMBERS = itertools.count(1)


class ClaudeApi:
    def is_turn(self, request: Request) -> bool:
        """A title is asked for with a format of its own; HEAD probes the address; tokens may be counted."""
        body = request.body if isinstance(request.body, dict) else {}
        is_message = request.method == "POST" and request.path.split("?")[0] == "/v1/messages"
        return is_message and not (body.get("output_config") or {}).get("format")

    def answer(self, request: Request, turn: Turn) -> tuple[str, list[bytes]]:
        """As the API does it: what was in at the start, what came out at the end."""
        number = next(_NUMBERS)
        calls = (_call(call, f"toolu_{number}_{index}") for index, call in enumerate(turn.calls))
        blocks = [*([{"type": "text", "text": turn.text}] if turn.text else []), *calls]
        message = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": request.body.get("model"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _usage(turn, 1),
        }
        pieces = [sse("message_start", {"type": "message_start", "message": message})]
        for index, block in enumerate(blocks):
            pieces += _block(index, block)
        end = {"stop_reason": "tool_use" if turn.calls else "end_turn", "stop_sequence": None}
        delta = {"type": "message_delta", "delta": end, "usage": {"output_tokens": turn.tokens_out}}
        return "text/event-stream", [
            *pieces,
            sse("message_delta", delta) + sse("message_stop", {"type": "message_stop"}),
        ]

    def aside(self, request: Request) -> tuple[str, list[bytes]]:
        if request.method != "POST":
            return "application/json", [b"{}"]
        if "count_tokens" in request.path:
            return "application/json", [b'{"input_tokens": 10}']
        return self.answer(request, Turn(text='{"title": "Some work"}', tokens_in=40, tokens_out=4))

    def refusal(self, turn: Turn) -> bytes:
        kind = KINDS.get(turn.status, "rate_limit_error" if turn.status == 429 else "api_error")
        return json.dumps({"type": "error", "error": {"type": kind, "message": turn.text or "refused"}}).encode()


def _usage(turn: Turn, out: int) -> dict[str, int]:
    """The API counts what it read from its cache apart."""
    return {
        "input_tokens": turn.tokens_in - turn.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": turn.cached,
        "output_tokens": out,
    }


def _call(call: Call, given: str) -> dict[str, Any]:
    name = call.tool if call.tool in OWN or call.tool.startswith("mcp__") else TOOLS + call.tool
    return {"type": "tool_use", "id": given, "name": name, "input": dict(call.arguments)}


def _block(index: int, block: Mapping[str, Any]) -> list[bytes]:
    """Empty first, then its content, then its end."""
    if block["type"] == "text":
        start: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    else:
        start = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    return [
        sse("content_block_start", {"type": "content_block_start", "index": index, "content_block": start}),
        sse("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}),
        sse("content_block_stop", {"type": "content_block_stop", "index": index}),
    ]
