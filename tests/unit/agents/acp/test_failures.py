"""What errors mean, by names, codes and words; and when a limit ends."""

from datetime import UTC, datetime

from tests.cases import each_case

from loopwright.adapters.agents.acp.failures import failure, problem, resets_at
from loopwright.core.values.failures import Failure

INTERNAL = -32603
GOOGLES = "please check your plan and billing details.\n* Quota exceeded for metric: free_tier_requests"


@each_case(
    ("code", "message", "data", "expected"),
    [
        (-32000, "Who are you?", None, Failure.AUTH),
        (INTERNAL, "Internal error", {"errorKind": "rate_limit"}, Failure.RATE_LIMIT),
        (INTERNAL, "You've hit your weekly limit", {"errorKind": "rate_limit"}, Failure.USAGE_LIMIT),
        (INTERNAL, "Internal error", {"errorKind": "billing_error"}, Failure.BILLING),
        (INTERNAL, "Internal error", {"errorKind": "server_error"}, Failure.OVERLOADED),
        (INTERNAL, "Internal error", {"errorName": "ProviderAuthError"}, Failure.AUTH),
        (INTERNAL, "Internal error", {"errorName": "APIError"}, Failure.AGENT_ERROR),
        (INTERNAL, "Internal error", {"codex_error_info": "usage_limit_exceeded"}, Failure.USAGE_LIMIT),
        (INTERNAL, "Internal error", {"details": "429 slow down"}, Failure.RATE_LIMIT),
        (INTERNAL, "Internal error", {"details": "503 no"}, Failure.OVERLOADED),
        (INTERNAL, "Internal error", {"message": "unexpected status 401 Unauthorized"}, Failure.AUTH),
        (INTERNAL, "fetch failed", None, Failure.ENVIRONMENT),
        (INTERNAL, "connect ECONNREFUSED 127.0.0.1:1", None, Failure.ENVIRONMENT),
        (INTERNAL, "Internal error", None, Failure.AGENT_ERROR),
        (INTERNAL, "4290 files were read", None, Failure.AGENT_ERROR),
        (429, "slow down", None, Failure.RATE_LIMIT),
        (500, "models/x is not found", None, Failure.MODEL),
        (500, "oh", None, Failure.OVERLOADED),
        (400, '{"error":{"code":400,"message":"API key not valid."}}', None, Failure.AUTH),
        (
            400,
            "You exceeded your current quota, please check your plan and billing details.",
            None,
            Failure.BILLING,
        ),
        (
            429,
            f"{GOOGLES}, limit: 20\nPlease retry in 46.15s.",
            None,
            Failure.RATE_LIMIT,
        ),
        (
            429,
            f"{GOOGLES}, limit: 0",
            None,
            Failure.BILLING,
        ),
        (400, "This model's maximum context length is 8192 tokens", None, Failure.CONTEXT),
        (None, "Error: 402 Payment Required", None, Failure.BILLING),
    ],
)
def test_an_error_is_taken_for_what_it_is(
    code: int | None, message: str, data: object, expected: Failure
) -> None:
    assert failure(problem({"code": code, "message": message, "data": data})) is expected


@each_case("odd", [None, "no", [], {"message": 7}, {"code": "x", "data": []}])
def test_an_odd_error_has_words_all_the_same(odd: object) -> None:
    told = problem(odd)
    assert told.message
    assert failure(told) is Failure.AGENT_ERROR


AT = datetime(2026, 11, 15, 20, 50, 30, tzinfo=UTC)


@each_case(
    ("text", "expected"),
    [
        ("You've hit your 5-hour limit · resets 9:44pm (UTC)", "2026-11-15T21:44:00+00:00"),
        ("resets 8pm (UTC)", "2026-11-16T20:00:00+00:00"),
        ("resets 12:05am (UTC)", "2026-11-16T00:05:00+00:00"),
        ("resets 12pm (UTC)", "2026-11-16T12:00:00+00:00"),
        ("resets 10:30pm (Europe/Berlin)", "2026-11-15T21:30:00+00:00"),
        ("resets Nov 18, 9:44pm (UTC)", "2026-11-18T21:44:00+00:00"),
        ("resets Jan 2, 9am (UTC)", "2027-01-02T09:00:00+00:00"),
        ("resets Feb 30, 9am (UTC)", None),
        ("resets 9:99pm (UTC)", None),
        ("resets 9pm (Nowhere/Land)", None),
        ("resets 9pm (Europe)", None),
        ("resets soon", None),
        ("Your quota will reset after 8h44m7s.", "2026-11-16T05:34:37+00:00"),
        ("It will reset in 1 day 4 hours. To continue", "2026-11-17T00:50:30+00:00"),
        ("Weekly usage limit reached. Resets in 19hr 5min", "2026-11-16T15:55:30+00:00"),
        ("It will reset in less than a minute", None),
        ("Please try again in 7m12.5s.", "2026-11-15T20:57:42.500000+00:00"),
        ("Suggested retry after 400s.", "2026-11-15T20:57:10+00:00"),
        ("retry after 900ms", "2026-11-15T20:50:30.900000+00:00"),
        ("will reset after 999999999h", None),
        ("try again in 5 minds", None),
        ("", None),
    ],
)
def test_the_end_of_a_limit_is_read_from_its_words(text: str, expected: str | None) -> None:
    found = resets_at(text, AT)
    assert (found.isoformat() if found else None) == expected
