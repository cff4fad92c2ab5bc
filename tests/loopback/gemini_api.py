"""The scripted model as Gemini CLI talks to it: the Gemini API, streamed."""

import json
from dataclasses import dataclass
from typing import Any

from loopback.model import Call, Request, Turn, sse

_WORDS = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
    403: ("PERMISSION_DENIED", "The caller does not have permission."),
    404: ("NOT_FOUND", "models/gemini-0 is not found for API version v1beta."),
    429: ("RESOURCE_EXHAUSTED", "You exceeded your current quota."),
    500: ("INTERNAL", "An internal error has occurred."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
}


@dataclass(frozen=True)
class Own(Call):
    """A tool of Gemini CLI itself."""


class GeminiApi:
    def is_turn(self, request: Request) -> bool:
        """The agent's loop always streams; a plain request is a summary or the like."""
        return ":streamGenerateContent" in request.path

    def answer(self, request: Request, turn: Turn) -> tuple[str, list[bytes]]:
        parts: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
        for call in turn.calls:
            name = call.tool if isinstance(call, Own) else f"mcp_agentd_{call.tool}"
            parts.append({"functionCall": {"name": name, "args": dict(call.arguments)}})
        pieces = [_piece([part]) for part in parts]
        return "text/event-stream", [*pieces, _piece([], finishReason="STOP", usage=_usage(turn))]

    def aside(self, request: Request) -> tuple[str, list[bytes]]:
        body = {"candidates": [_candidate([{"text": "A session"}], finishReason="STOP")]}
        return "application/json", [json.dumps(body).encode()]

    def refusal(self, turn: Turn) -> bytes:
        status, words = _WORDS.get(turn.status, ("UNKNOWN", "It went wrong."))
        error: dict[str, Any] = {"code": turn.status, "message": words, "status": status}
        if wait := turn.headers.get("retry-after"):
            error["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{wait}s"}]
        return json.dumps({"error": error}).encode()


def heard(request: Request) -> str:
    """Everything the model gets to see in a request, as text."""
    return json.dumps(request.body)


def offered(request: Request) -> set[str]:
    """The tools that the model may call."""
    return {tool["name"] for group in request.body["tools"] for tool in group["functionDeclarations"]}


def _piece(parts: list[dict[str, Any]], usage: dict[str, int] | None = None, **more: str) -> bytes:
    data: dict[str, Any] = {"candidates": [_candidate(parts, **more)], "modelVersion": "gemini-2.5-pro"}
    return sse(None, {**data, **({"usageMetadata": usage} if usage else {})})


def _candidate(parts: list[dict[str, Any]], **more: str) -> dict[str, Any]:
    return {"index": 0, "content": {"role": "model", "parts": parts}, **more}


def _usage(turn: Turn) -> dict[str, int]:
    return {
        "promptTokenCount": turn.tokens_in,
        "cachedContentTokenCount": turn.cached,
        "candidatesTokenCount": turn.tokens_out,
        "totalTokenCount": turn.tokens_in + turn.tokens_out,
    }
