"""What the app server tells of a turn, and what that comes to."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.cases import each_case
from tests.unit.agents.codex.codex_messages import AGENT, answered, begun, ended, message

from loopwright.core.rows.model import Usage
from loopwright.core.rows.waiting_rows import QuotaKind
from loopwright.core.values.failures import Failure
from loopwright.core.values.permissions import Permissions
from loopwright.ports import AgentEvent, AgentResult, OutputLine

EDIT = Permissions()
WORDS = message("item/completed", item={"type": "agentMessage", "id": "m", "text": "Done."})
COUNTS = {"inputTokens": 100, "cachedInputTokens": 40, "cacheWriteInputTokens": 10, "outputTokens": 7}
ONE = Usage(input_tokens=50, output_tokens=7, cache_read_tokens=40, cache_write_tokens=10)


def end(status: str = "completed", turn: str = "U", **more: Any) -> OutputLine:
    return message("turn/completed", turn={"id": turn, "status": status, **more})


def used(times: int, *, thread: str = "T", turn: str = "U") -> OutputLine:
    total = {name: count * times for name, count in COUNTS.items()}
    usage = {"total": total, "last": COUNTS}
    return message("thread/tokenUsage/updated", threadId=thread, turnId=turn, tokenUsage=usage)


def limits(**windows: Any) -> OutputLine:
    return message("account/rateLimits/updated", rateLimits=windows)


def judged(*lines: OutputLine, code: int = 0, ended_by: str = "itself", **begin: Any) -> AgentResult:
    return AGENT.result(begun(EDIT, *lines, **begin), ended(code, ended_by))


def told(*lines: OutputLine) -> list[AgentEvent]:
    state, events = begun(EDIT), []
    for line in lines:
        step = AGENT.fold(state, line)
        state = step.state
        events.extend(step.events)
    return events


def failed(info: Any, words: str = "something", **more: Any) -> AgentResult:
    error = {"message": words, "codexErrorInfo": info, **more}
    return judged(end("failed", error=error))


class TestErrors:
    @pytest.mark.capability("C028")
    @each_case(
        ("info", "failure"),
        [
            ("contextWindowExceeded", Failure.CONTEXT),
            ("sessionBudgetExceeded", Failure.BUDGET),
            ("usageLimitExceeded", Failure.USAGE_LIMIT),
            ("rateLimitExceeded", Failure.RATE_LIMIT),
            ("flexUnavailable", Failure.OVERLOADED),
            ("serverOverloaded", Failure.OVERLOADED),
            ("internalServerError", Failure.OVERLOADED),
            ("cyberPolicy", Failure.REFUSAL),
            ("misalignmentPolicyViolation", Failure.REFUSAL),
            ("unauthorized", Failure.AUTH),
            ("sandboxError", Failure.ENVIRONMENT),
            ("tooManyDenials", Failure.AGENT_ERROR),
            ("badRequest", Failure.AGENT_ERROR),
            ("other", Failure.AGENT_ERROR),
            ("somethingNew", Failure.AGENT_ERROR),
            (None, Failure.AGENT_ERROR),
            ({"httpConnectionFailed": {"httpStatusCode": 401}}, Failure.AUTH),
            ({"httpConnectionFailed": {"httpStatusCode": 402}}, Failure.BILLING),
            ({"httpConnectionFailed": {"httpStatusCode": 403}}, Failure.AUTH),
            ({"httpConnectionFailed": {"httpStatusCode": 404}}, Failure.MODEL),
            ({"responseStreamConnectionFailed": {"httpStatusCode": 413}}, Failure.CONTEXT),
            ({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}, Failure.RATE_LIMIT),
            ({"responseStreamDisconnected": {"httpStatusCode": 503}}, Failure.OVERLOADED),
            ({"responseStreamDisconnected": {"httpStatusCode": None}}, Failure.ENVIRONMENT),
            ({"httpConnectionFailed": {}}, Failure.ENVIRONMENT),
            ({"activeTurnNotSteerable": {"turnKind": "review"}}, Failure.AGENT_ERROR),
        ],
    )
    def test_an_error_is_known_by_its_name_or_by_what_the_service_answered(
        self, info: Any, failure: Failure
    ) -> None:
        result = failed(info)
        assert result.failure is failure
        assert result.detail == "something"

    @each_case(
        ("words", "failure"),
        [
            ("Quota exceeded. Check your plan and billing details.", Failure.BILLING),
            ("Your workspace is out of credits. Add credits to continue.", Failure.BILLING),
            (
                "You hit your spend cap set in your workspace. Increase your spend cap to continue.",
                Failure.BILLING,
            ),
            ("To use Codex with your ChatGPT plan, upgrade to Plus: https://example.com", Failure.BILLING),
            ("You’ve hit your usage limit.", Failure.USAGE_LIMIT),
        ],
    )
    def test_an_account_without_credit_is_no_limit_that_ends_although_it_has_the_name_of_one(
        self, words: str, failure: Failure
    ) -> None:
        assert failed("usageLimitExceeded", words).failure is failure

    @each_case(
        ("words", "failure"),
        [
            ('{"error": {"code": "context_length_exceeded"}}', Failure.CONTEXT),
            ("The 'gpt-0' model is not supported when using Codex with a ChatGPT account.", Failure.MODEL),
            ("Incomplete response returned, reason: max_output_tokens", Failure.CONTEXT),
            ("Incomplete response returned, reason: content_filter", Failure.REFUSAL),
            ("Your access token could not be refreshed. Please sign in again.", Failure.AUTH),
            ("stream disconnected before completion: An error occurred", Failure.ENVIRONMENT),
            ("unexpected status 418 I'm a teapot", Failure.AGENT_ERROR),
        ],
    )
    def test_words_are_the_last_resort(self, words: str, failure: Failure) -> None:
        assert failed("other", words).failure is failure

    def test_an_error_before_the_turn_means_that_it_cannot_start(self) -> None:
        state = AGENT.initial(begun(EDIT).request)
        line = json.dumps({"id": "thread", "error": {"code": -32600, "message": "no such setting"}})
        step = AGENT.fold(state, OutputLine(offset=0, stream="out", text=line))
        assert step.close
        assert AGENT.result(step.state, ended(0)).failure is Failure.CANNOT_START

    def test_a_retry_is_told_as_one_and_an_error_as_one(self) -> None:
        error = {"message": "Reconnecting... 1/5", "codexErrorInfo": "serverOverloaded"}
        events = told(
            message("error", error=error, willRetry=True), message("error", error=error, willRetry=False)
        )
        assert [event.kind for event in events] == ["Retry", "Error"]

    def test_who_was_ended_while_it_waited_for_its_service_did_not_take_too_long_itself(self) -> None:
        error = {
            "message": "Reconnecting... waiting for network",
            "codexErrorInfo": {"responseStreamDisconnected": {"httpStatusCode": None}},
            "additionalDetails": "Connection failed",
        }
        waits = message("error", error=error, willRetry=True)
        for ended_by in ("deadline", "idle"):
            result = judged(waits, code=-9, ended_by=ended_by)
            assert result.failure is Failure.ENVIRONMENT
            assert "waiting for network / Connection failed" in result.detail
        assert judged(waits, WORDS, code=-9, ended_by="deadline").failure is Failure.TIMEOUT
        assert judged(waits, code=-9, ended_by="asked").failure is Failure.CANCELLED

    def test_a_turn_without_a_word_or_a_deed_was_refused(self) -> None:
        nothing = message("item/completed", item={"type": "userMessage", "id": "u"})
        begins = message("item/started", item={"type": "agentMessage", "id": "m", "text": ""})
        assert judged(nothing, begins, end()).failure is Failure.REFUSAL
        assert judged(nothing, begins, WORDS, end()).claimed

    def test_complaints_after_the_turn_began_do_not_explain_a_crash(self) -> None:
        complaint = OutputLine(offset=0, stream="err", text="ERROR: rate limit exceeded by a command")
        assert judged(complaint, code=1).failure is Failure.CRASH

    def test_who_failed_has_asked_nothing(self) -> None:
        asks = message(
            "item/commandExecution/requestApproval", 7, command="make dist", cwd="/home/x/workspace"
        )
        error = {"message": "x", "codexErrorInfo": "unauthorized"}
        result = judged(asks, end("failed", error=error))
        assert (result.failure, result.asked) == (Failure.AUTH, ())

    @each_case(
        ("info", "words", "after_s"),
        [
            ("rateLimitExceeded", "Rate limit reached. Please try again in 1m2.5s.", 62.5),
            ("rateLimitExceeded", "Rate limit reached.", None),
            ("serverOverloaded", "Selected model is at capacity. Try again in 20s.", 20.0),
            ("contextWindowExceeded", "Try again in 20s.", None),
        ],
    )
    def test_a_service_that_asks_to_slow_down_may_say_for_how_long(
        self, info: str, words: str, after_s: float | None
    ) -> None:
        again_at = None if after_s is None else ended(0).ended_at + timedelta(seconds=after_s)
        assert failed(info, words).retry_at == again_at


class TestUsage:
    def test_each_count_tells_what_the_run_has_used_so_far(self) -> None:
        heard = told(used(1), used(2), used(5, thread="helper", turn="V"))
        assert [event.data["output_tokens"] for event in heard] == [7, 7, 7]
        assert [event.data["run"]["output_tokens"] for event in heard] == [7, 14, 49], "with its helpers"

    def test_the_share_of_this_run_is_what_was_not_there_before(self) -> None:
        assert (
            judged(
                used(3), WORDS, end(), spent=Usage(**{n: getattr(ONE, n) * 2 for n in Usage.__slots__})
            ).usage
            == ONE
        )

    def test_what_is_repeated_at_a_resumption_is_told_to_nobody(self) -> None:
        assert [event.kind for event in told(used(2, turn="earlier"), used(3))] == ["Usage"]

    def test_a_copy_does_not_count_what_it_brought_along(self) -> None:
        more = {"session_ref": "S", "fork": True}
        assert judged(used(3), used(4), WORDS, end(), **more).usage == Usage(
            input_tokens=100, output_tokens=14, cache_read_tokens=80, cache_write_tokens=20
        )

    def test_what_a_copy_used_that_failed_is_unknown(self) -> None:
        assert judged(used(3), end("failed"), session_ref="S", fork=True).usage is None

    def test_agents_that_it_started_are_counted_and_their_end_is_not_its_own(self) -> None:
        theirs = message("turn/completed", threadId="other", turn={"id": "V", "status": "failed"})
        state = begun(EDIT, used(1), used(2, thread="other", turn="V"), theirs)
        assert state.ending is None
        result = AGENT.result(AGENT.fold(AGENT.fold(state, WORDS).state, end()).state, ended(0))
        assert result.claimed
        assert result.usage == Usage(
            input_tokens=150, output_tokens=21, cache_read_tokens=120, cache_write_tokens=30
        )

    def test_another_turn_of_the_conversation_does_not_end_ours(self) -> None:
        assert begun(EDIT, end("interrupted", turn="earlier")).ending is None

    def test_words_of_an_agent_that_it_started_are_not_its_own_last_words(self) -> None:
        theirs = message(
            "item/completed", threadId="other", item={"type": "agentMessage", "id": "n", "text": "No."}
        )
        assert judged(WORDS, theirs, end()).summary == "Done."


class TestQuota:
    def test_the_latest_of_the_used_up_windows_says_when_to_try_again(self) -> None:
        windows = limits(
            primary={"usedPercent": 100, "resetsAt": 1_900_000_000},
            secondary={"usedPercent": 100, "resetsAt": 1_900_500_000},
        )
        error = {"message": "You’ve hit your usage limit.", "codexErrorInfo": "usageLimitExceeded"}
        result = judged(windows, end("failed", error=error))
        assert result.retry_at == datetime.fromtimestamp(1_900_500_000, UTC)

    def test_a_used_up_window_that_does_not_say_when_it_ends_leaves_it_open(self) -> None:
        windows = limits(
            primary={"usedPercent": 100, "resetsAt": 1_900_000_000}, secondary={"usedPercent": 100}
        )
        error = {"message": "You’ve hit your usage limit.", "codexErrorInfo": "usageLimitExceeded"}
        assert judged(windows, end("failed", error=error)).retry_at is None

    def test_a_window_of_one_model_refuses_that_model_alone(self) -> None:
        error = {"message": "You’ve hit your usage limit.", "codexErrorInfo": "usageLimitExceeded"}
        account = limits(primary={"usedPercent": 100, "resetsAt": 1_900_000_000})
        other = limits(
            limitId="spark",
            normalModelSlug="spark-1",
            primary={"usedPercent": 100, "resetsAt": 1_900_500_000},
        )
        alone = judged(other, end("failed", error=error))
        assert [(one.name, one.model, one.rejected) for one in alone.windows] == [
            ("spark/primary", "spark-1", True)
        ]
        both = judged(account, other, end("failed", error=error))
        assert [one.rejected for one in both.windows] == [True, False], "it is not its own model's"
        assert both.retry_at == datetime.fromtimestamp(1_900_000_000, UTC)

    def test_each_window_has_its_newest_word_and_its_own_name(self) -> None:
        result = judged(
            limits(limitId="codex", primary={"usedPercent": 10, "resetsAt": 1_900_000_000}),
            limits(limitId="codex", primary={"usedPercent": 20}, secondary=None),
            limits(limitId="other", primary={"usedPercent": 30}),
            limits(
                individualLimit={"remainingPercent": 15, "resetsAt": 1_900_000_000, "limit": "9", "used": "8"}
            ),
            WORDS,
            end(),
        )
        assert [(one.name, one.used, one.rejected) for one in result.windows] == [
            ("primary", 0.2, False),
            ("other/primary", 0.3, False),
            ("individualLimit", 0.85, False),
        ]

    def test_what_each_part_of_the_quota_is_paid_with(self) -> None:
        result = judged(
            limits(
                primary={"usedPercent": 10, "windowDurationMins": 300},
                secondary={"usedPercent": 20, "windowDurationMins": 10_080},
                credits={"hasCredits": True, "unlimited": False, "balance": "12.50"},
                individualLimit={
                    "remainingPercent": 15,
                    "resetsAt": 1_900_000_000,
                    "limit": "9",
                    "used": "8",
                },
            ),
            # Not everything is said each time, and what is not said has not changed.
            limits(primary={"usedPercent": 30}, secondary=None, credits=None),
            WORDS,
            end(),
        )
        assert [(one.kind.value, one.used, one.left) for one in result.windows] == [
            ("subscription", 0.3, ""),
            ("weekly", 0.2, ""),
            ("credits", 0.85, "8 of 9 used"),
            ("credits", None, "12.50"),
        ]

    def test_what_is_left_or_used_is_said_once(self) -> None:
        said = told(
            limits(individualLimit={"limit": "9", "used": "8"}),
            limits(credits={"hasCredits": True, "balance": "12.50"}),
        )
        assert [event.text for event in said if event.kind == "RateLimit"] == [
            "individualLimit: 8 of 9 used",
            "credits: 12.50 left",
        ]

    @each_case(
        ("facts", "left"),
        [
            ({"hasCredits": True, "unlimited": True, "balance": None}, "unlimited"),
            ({"hasCredits": False, "unlimited": False, "balance": None}, "none"),
            ({"hasCredits": True, "unlimited": False}, ""),
            ({"hasCredits": True, "unlimited": False, "balance": ["odd"]}, ""),
        ],
    )
    def test_credits_are_told_in_the_words_of_the_service(self, facts: dict[str, Any], left: str) -> None:
        (window,) = judged(limits(credits=facts), WORDS, end()).windows
        assert (window.kind, window.left, window.used) == (QuotaKind.CREDITS, left, None)

    def test_credits_that_are_used_up_are_what_a_request_was_refused_for(self) -> None:
        windows = limits(
            primary={"usedPercent": 40, "resetsAt": 1_900_000_000, "windowDurationMins": 300},
            credits={"hasCredits": False, "unlimited": False, "balance": "0"},
            rateLimitReachedType="workspace_member_credits_depleted",
        )
        error = {"message": "You’ve hit your usage limit.", "codexErrorInfo": "usageLimitExceeded"}
        result = judged(windows, end("failed", error=error))
        assert [(one.name, one.rejected) for one in result.windows] == [("primary", False), ("credits", True)]
        # Nobody knows when somebody buys more.
        assert (result.failure, result.retry_at) == (Failure.BILLING, None)

    @each_case(
        ("reached", "failure"),
        [
            ("workspace_owner_credits_depleted", Failure.BILLING),
            ("workspace_member_usage_limit_reached", Failure.BILLING),
            ("rate_limit_reached", Failure.USAGE_LIMIT),
            (None, Failure.USAGE_LIMIT),
            (["odd"], Failure.USAGE_LIMIT),
        ],
    )
    def test_whether_money_or_time_is_missing_is_said_without_words(
        self, reached: object, failure: Failure
    ) -> None:
        told = limits(
            primary={"usedPercent": 100, "resetsAt": 1_900_000_000},
            rateLimitReachedType=reached,
            credits=None,
        )
        error = {"message": "In other words.", "codexErrorInfo": "usageLimitExceeded"}
        # What is not said again has not changed.
        result = judged(told, limits(primary=None), end("failed", error=error))
        assert result.failure is failure
        assert (result.retry_at is None) == (failure is Failure.BILLING)

    def test_the_newest_word_on_what_is_missing_counts(self) -> None:
        error = {"message": "In other words.", "codexErrorInfo": "usageLimitExceeded"}
        once = limits(rateLimitReachedType="workspace_owner_credits_depleted")
        assert [one.name for one in judged(once, WORDS, end()).windows] == ["credits"]
        result = judged(once, limits(rateLimitReachedType="rate_limit_reached"), end("failed", error=error))
        assert result.failure is Failure.USAGE_LIMIT

    @each_case(
        ("account", "kinds"),
        [
            ({"type": "apiKey"}, [QuotaKind.DOLLARS]),
            ({"type": "chatgpt", "email": None, "planType": "plus"}, []),
            (None, []),
            ("odd", []),
        ],
    )
    def test_a_key_is_paid_for_call_by_call(self, account: object, kinds: list[QuotaKind]) -> None:
        answer = answered("account", account=account, requiresOpenaiAuth=True)
        assert [one.kind for one in judged(answer, WORDS, end()).windows] == kinds

    def test_one_that_does_not_know_who_is_logged_in_works_all_the_same(self) -> None:
        refused = {"id": "account", "error": {"code": -32601, "message": "unknown method"}}
        answer = OutputLine(offset=0, stream="out", text=json.dumps(refused))
        result = judged(answer, WORDS, end())
        assert (result.claimed, result.windows) == (True, ())

    def test_a_window_is_told_when_it_changes(self) -> None:
        same = limits(primary={"usedPercent": 10})
        assert [event.text for event in told(same, same, limits(primary={"usedPercent": 11}))] == [
            "primary: 10% used",
            "primary: 11% used",
        ]


class TestTelling:
    @each_case(("status", "ok"), [("completed", True), ("failed", False), ("declined", False)])
    def test_how_a_command_ended_is_told(self, status: str, ok: bool) -> None:
        item = {
            "type": "commandExecution",
            "id": "c",
            "command": "/bin/sh -c 'make'",
            "aggregatedOutput": "out",
        }
        (event,) = told(message("item/completed", item={**item, "status": status}))
        assert (event.kind, event.text, event.data["ok"]) == ("ToolEnd", "out", ok)

    def test_files_are_told_with_what_became_of_them(self) -> None:
        diff = (
            "diff --git a/new.txt b/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+a\n"
            "diff --git a/old.txt b/old.txt\ndeleted file mode 100644\n--- a/old.txt\n+++ /dev/null\n@@ -1 @@\n-a\n"
            "diff --git a/it.txt b/it.txt\n--- a/it.txt\n+++ b/it.txt\n@@ -1 +1 @@\n-new file\n+b\n"
        )
        events = told(message("turn/diff/updated", diff=diff))
        assert [(event.data["path"], event.data["change"]) for event in events] == [
            ("new.txt", "created"),
            ("old.txt", "deleted"),
            ("it.txt", "changed"),
        ]

    def test_thoughts_are_told_as_such(self) -> None:
        (event,) = told(
            message("item/completed", item={"type": "reasoning", "id": "r", "summary": ["I", "think"]})
        )
        assert (event.kind, event.text, event.data) == ("Text", "I\nthink", {"thinking": True})

    def test_a_tool_server_that_does_not_start_is_told_and_one_that_does_is_not(self) -> None:
        name = "mcpServer/startupStatus/updated"
        events = told(
            message(name, name="toy", status="ready"),
            message(name, name="toy", status="failed", error="gone"),
        )
        assert [(event.kind, event.text) for event in events] == [("Error", "toy: gone")]

    def test_another_model_than_the_wanted_one_is_noted(self) -> None:
        rerouted = message("model/rerouted", fromModel="a", toModel="b", reason="highRiskCyberActivity")
        assert judged(rerouted, WORDS, end()).model == "b"

    def test_half_a_character_in_the_prompt_does_not_keep_it_from_being_read(self) -> None:
        state = begun(EDIT, prompt="a\ud800b\0c")
        (write,) = AGENT.fold(state, answered("thread", thread={"id": "T"})).writes
        assert json.loads(write.encode())["params"]["input"][0]["text"] == "a?b\0c"
