"""Causes of failure, from the words with which programs end; prose is no cause."""

import json

import pytest

from agentd.agents.failures import FailureCause, cause_of_status, cause_of_text, failure_hint, requested_wait
from assertions import assert_grows_linearly

FAILURES = {
    # how Gemini ends
    '[API Error: {"error":{"code":401,"message":"API key not valid. Please pass a valid API key.",'
    '"status":"UNAUTHENTICATED"}}]': FailureCause.KEY_REFUSED,
    "[API Error: You have exhausted your capacity on this model. Your quota will reset after 2h13m5s.]": (
        FailureCause.RATE_LIMITED
    ),
    "You exceeded your current quota, please check your plan and billing details. Please retry in 34.07s.": (
        FailureCause.RATE_LIMITED
    ),
    '{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).",'
    '"status":"RESOURCE_EXHAUSTED"}}': FailureCause.RATE_LIMITED,
    "Please set an Auth method in your settings or specify one of the following environment variables before running: "
    "GEMINI_API_KEY, GOOGLE_GENAI_USE_VERTEXAI": FailureCause.NOT_LOGGED_IN,
    "When using Gemini API, you must specify the GEMINI_API_KEY environment variable.": FailureCause.NOT_LOGGED_IN,
    "models/gemini-9-pro is not found for API version v1beta, or is not supported for generateContent.": (
        FailureCause.MODEL_UNKNOWN
    ),
    'Error resuming session: Invalid session identifier "0000".': FailureCause.SESSION_LOST,
    "request to https://generativelanguage.example/v1beta failed, reason: connect ECONNREFUSED 127.0.0.1:9": (
        FailureCause.NETWORK_DOWN
    ),
    "TypeError: fetch failed": FailureCause.NETWORK_DOWN,
    '{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}': (
        FailureCause.SERVER_ERROR
    ),
    # how Codex ends
    "unexpected status 401 Unauthorized: Incorrect API key provided, url: http://127.0.0.1:18080/v1/responses": (
        FailureCause.KEY_REFUSED
    ),
    "exceeded retry limit, last status: 429 Too Many Requests": FailureCause.RATE_LIMITED,
    "You've hit your usage limit. Upgrade to Plus or try again in 3 hours 12 minutes.": FailureCause.RATE_LIMITED,
    '{"error":{"message":"You exceeded your current quota, please check your plan and billing details.",'
    '"type":"insufficient_quota"}}': FailureCause.KEY_REFUSED,
    "unexpected status 404 Not Found: The model `gpt-9` does not exist or you do not have access to it.": (
        FailureCause.MODEL_UNKNOWN
    ),
    "Error: thread/resume failed: no rollout found for thread id 01a1e0af-37ed-7c91-a70b-a2d1b6d94b23": (
        FailureCause.SESSION_LOST
    ),
    "stream disconnected before completion: error sending request for url": FailureCause.NETWORK_DOWN,
    "unexpected status 500 Internal Server Error": FailureCause.SERVER_ERROR,
    "Your access token could not be refreshed. Please log out and sign in again.": FailureCause.NOT_LOGGED_IN,
    "Not logged in": FailureCause.NOT_LOGGED_IN,
    # how Claude Code ends
    "Invalid API key · Fix external API key": FailureCause.KEY_REFUSED,
    "Invalid API key · Please run /login": FailureCause.NOT_LOGGED_IN,
    'API Error: 401 {"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}': (
        FailureCause.KEY_REFUSED
    ),
    'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}': (
        FailureCause.SERVER_ERROR
    ),
    "API Error: 500 Internal server error": FailureCause.SERVER_ERROR,
    "API Error: Connection error.": FailureCause.NETWORK_DOWN,
    "API Error: Request timed out.": FailureCause.NETWORK_DOWN,
    "Claude AI usage limit reached|1737400000": FailureCause.RATE_LIMITED,
    "5-hour limit reached ∙ resets 3pm": FailureCause.RATE_LIMITED,
    "Credit balance is too low": FailureCause.KEY_REFUSED,
    "No conversation found with session ID: 0dd3f1ce-1ef9-4f4c-9f58-6d90f1a3a1f0": FailureCause.SESSION_LOST,
    # other programs
    "error: HTTP/1.1 503 Service Unavailable": FailureCause.SERVER_ERROR,
    "429 Too Many Requests": FailureCause.RATE_LIMITED,
    "curl: (6) Could not resolve host: api.example.com": FailureCause.NETWORK_DOWN,
    "socket.gaierror: [Errno -2] Name or service not known": FailureCause.NETWORK_DOWN,
    "openai.RateLimitError: Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-x'}}": (
        FailureCause.RATE_LIMITED
    ),
    "anthropic.AuthenticationError: Error code: 401": FailureCause.KEY_REFUSED,
    "llm.errors.NeedsKeyException: No key found - add one using 'llm keys set openai'\nno api key": (
        FailureCause.NOT_LOGGED_IN
    ),
}


@pytest.mark.parametrize("words", FAILURES)
def test_failure_message_is_classified_by_cause(words: str) -> None:
    assert cause_of_text(words) is FAILURES[words]


PROSE = (
    "",
    "Traceback (most recent call last):\n  File 'src/quota.py', line 429, in check\nKeyError: 'limit'",
    "ValueError: 500 rows expected, 403 found",
    "read 401 bytes in 503 ms",
    "SyntaxError: Invalid or unexpected token",
    "McpError: MCP error -32000: Connection closed",
    "jq: error: the token ends here; expired cache entries were removed",
    "Segmentation fault (core dumped)",
    "error TS2304: Cannot find name 'session'.",
    "FAILED tests/test_limits.py::test_rate_limiter - assert 3 == 4",
    "warning: the login page has no title; the data model was not changed",
    "panicked at src/main.rs:500:9: index out of bounds: the len is 429 but the index is 500",
    "usage: my-agent [--model MODEL] [--session ID]",
    "my-agent: error: unrecognized arguments: --quiet",
    "npm ERR! code ELIFECYCLE",
    "error: file not found: models.py",
    "Killed",
)


@pytest.mark.parametrize("words", PROSE)
def test_unrelated_output_is_not_classified_as_a_failure_cause(words: str) -> None:
    assert cause_of_text(words) is None


WAITS = {
    "Retry-After: 30": 30,
    "retry-after-ms: 1500": 1.5,
    json.dumps({"retry_delay_ms": 542.5}): 0.5425,
    json.dumps({"retryDelay": "34s"}): 34,
    "Please retry in 34.25s.": 34.25,
    "Please try again in 250ms.": 0.25,
    "try again in 20 seconds": 20,
    "Upgrade to Plus or try again in 3 hours 12 minutes.": 3 * 3600 + 12 * 60,
    "try again in 4 days 3 hours": 4 * 86400 + 3 * 3600,
    "Your quota will reset after 2h13m5s.": 2 * 3600 + 13 * 60 + 5,
    "limit resets in 45 minutes": 45 * 60,
    "Rate limited: wait 60 seconds": 60,
    "please wait, then try again after 5s": 5,
}


@pytest.mark.parametrize("words", WAITS)
def test_stated_retry_wait_is_parsed(words: str) -> None:
    assert requested_wait(words) == pytest.approx(WAITS[words])


@pytest.mark.parametrize(
    "words",
    [
        "",
        "Too many requests",
        "try again later",
        "resets 3pm (UTC)",
        "Claude AI usage limit reached|1737400000",
        "you may retry after 3 failed attempts",
        "wait 20",
    ],
)
def test_no_retry_wait_is_returned_when_none_is_stated(words: str) -> None:
    assert requested_wait(words) is None


def test_http_status_maps_to_failure_cause() -> None:
    assert [cause_of_status(code) for code in (200, 400, 401, 403, 404, 429, 500, 529)] == [
        None,
        None,
        FailureCause.KEY_REFUSED,
        FailureCause.KEY_REFUSED,
        FailureCause.MODEL_UNKNOWN,
        FailureCause.RATE_LIMITED,
        FailureCause.SERVER_ERROR,
        FailureCause.SERVER_ERROR,
    ]


@pytest.mark.parametrize("cause", FailureCause)
def test_every_failure_cause_has_a_hint(cause: FailureCause) -> None:
    assert failure_hint(cause, "gemini", "planner", "add-oauth")


def test_only_transient_causes_are_retryable() -> None:
    assert {cause for cause in FailureCause if cause.can_pass} == {
        FailureCause.RATE_LIMITED,
        FailureCause.SERVER_ERROR,
        FailureCause.NETWORK_DOWN,
    }


@pytest.mark.parametrize("unit", ["exceeded ", "model ", "error ", "wait 1 ", "retry after 1 ", "invalid session "])
def test_classifying_long_output_takes_linear_time(unit: str) -> None:
    assert_grows_linearly(cause_of_text, "", unit)
    assert_grows_linearly(requested_wait, "", unit)
