"""The scripted model as Codex talks to it: the Responses API, streamed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from loopback.model import Call, Request, Turn, sse

_TYPES = {401: "invalid_request_error", 404: "invalid_request_error", 429: "rate_limit_exceeded"}
_WORDS = {
    400: "Unsupported value.",
    401: "Incorrect API key provided.",
    403: "You are not allowed to use this.",
    404: "The model `gpt-0` does not exist or you do not have access to it.",
    429: "Rate limit reached for requests.",
    500: "The server had an error while processing your request.",
    503: "The server is overloaded.",
}


@dataclass(frozen=True)
class Elsewhere(Call):
    """A tool that is not agentd's: of another server, or Codex's own."""

    server: str | None = None


class CodexApi:
    def is_turn(self, request: Request) -> bool:
        return request.method == "POST" and request.path.endswith("/responses")

    def answer(self, request: Request, turn: Turn) -> tuple[str, list[bytes]]:
        response = {"id": "resp_1", "object": "response", "status": "completed", "usage": _usage(turn)}
        return "text/event-stream", [
            _event("response.created", response={"id": "resp_1"}),
            *(_event("response.output_item.done", output_index=place, item=item) for place, item in _items(turn)),
            _event("response.completed", response=response),
        ]

    def aside(self, request: Request) -> tuple[str, list[bytes]]:
        return "application/json", [b'{"models": [], "data": []}']

    def refusal(self, turn: Turn) -> bytes:
        words = _WORDS.get(turn.status, "It went wrong.")
        kind = _TYPES.get(turn.status, "server_error")
        return json.dumps({"error": {"message": words, "type": kind, "code": None, "param": None}}).encode()


def _event(kind: str, **data: Any) -> bytes:
    return sse(kind, {"type": kind, **data})


def _items(turn: Turn) -> Iterator[tuple[int, dict[str, Any]]]:
    place = 0
    if turn.text:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        yield place, {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
        place += 1
    for number, call in enumerate(turn.calls, place):
        server = call.server if isinstance(call, Elsewhere) else "agentd"
        where = {"namespace": f"mcp__{server}"} if server else {}
        arguments = json.dumps(call.arguments)
        ids = {"id": f"fc_{number}", "call_id": f"call_{id(turn)}_{number}"}
        yield number, {"type": "function_call", **ids, **where, "name": call.tool, "arguments": arguments}


def _usage(turn: Turn) -> dict[str, Any]:
    return {
        "input_tokens": turn.tokens_in,
        "input_tokens_details": {"cached_tokens": turn.cached},
        "output_tokens": turn.tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": turn.tokens_in + turn.tokens_out,
    }
