"""Every type of event, as data: its importance, and its sentence for docs and pages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from loopwright.core.rows.model import Attempt, Loop, Plan, Run, Task


class Importance(StrEnum):
    """How important an event is to the user."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, before the store numbers it."""

    type: str
    actor: str
    project: str | None = None
    loop: str | None = None
    plan: str | None = None
    task: str | None = None
    attempt: str | None = None
    run: str | None = None
    importance: Importance = Importance.NORMAL
    version: int = 1
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEvent(Event):
    """An event as stored: numbered without gaps, hash-chained per plan."""

    n: int
    id: str
    at: datetime
    prev_hash: str
    hash: str


@dataclass(frozen=True, slots=True)
class EventType:
    """The meaning of an event."""

    importance: Importance
    meaning: str


_LOW, _NORMAL, _HIGH = Importance.LOW, Importance.NORMAL, Importance.HIGH

CATALOGUE: Final[Mapping[str, EventType]] = MappingProxyType(
    {
        "project_registered": EventType(_NORMAL, "A repository became a project of this home."),
        "project_moved": EventType(_HIGH, "The repository of a project is at another path now."),
        "loop_created": EventType(_NORMAL, "A work source became a loop."),
        "loop_deleted": EventType(_NORMAL, "A loop was deleted; its plans are kept."),
        "loop_starting": EventType(_LOW, "A start of the loop was asked for."),
        "loop_not_started": EventType(_HIGH, "The loop could not be started; the payload says why."),
        "loop_started": EventType(_NORMAL, "The loop runs."),
        "loop_paused": EventType(_HIGH, "The loop starts nothing more until it is resumed."),
        "loop_stopped": EventType(_HIGH, "The loop was stopped by a person."),
        "issue_refused": EventType(_NORMAL, "A labelled issue did not become work; the payload says why."),
        "issue_claimed": EventType(_NORMAL, "Loopwright works on an issue, and wrote that there."),
        "issue_sent_back": EventType(
            _NORMAL, "Failed checks or comments of a pull request lead to another attempt."
        ),
        "issue_held": EventType(
            _HIGH, "What came back about a pull request is left to you; the payload says why."
        ),
        "issue_dropped": EventType(_HIGH, "The pull request of an issue was closed without a merge."),
        "issue_closed": EventType(
            _HIGH, "The pull request was merged, and the issue closed with its receipt."
        ),
        "loop_completed": EventType(_HIGH, "Everything in the loop's plan was verified."),
        "loop_failed": EventType(_HIGH, "The loop needs you to continue."),
        "loop_waits": EventType(
            _NORMAL, "The loop waits for another one that changes the same files or has the same lock."
        ),
        "loop_turn": EventType(_NORMAL, "The loop has the files or the lock that it waited for."),
        "deadlock_broken": EventType(
            _HIGH, "Loops waited for each other; the newest request was refused, and the payload says why."
        ),
        "hold_released": EventType(_NORMAL, "You took files or a lock from a loop."),
        "action_taken": EventType(
            _NORMAL, "An agent changed something with its tools; the payload says what and why."
        ),
        "action_undone": EventType(_NORMAL, "What an agent did with its tools was undone."),
        "plan_rebased": EventType(
            _NORMAL, "The plan starts from what the plans made that it waited for, not from its first base."
        ),
        "plan_created": EventType(_NORMAL, "A plan was read and evaluated."),
        "plan_imported": EventType(
            _HIGH, "The rows of the plan were lost, and were made again from what its project exported."
        ),
        "plan_drafted": EventType(_NORMAL, "The tasks of a draft were written or changed."),
        "plan_dispatching": EventType(_LOW, "The tasks of the plan get their first attempts."),
        "plan_dispatched": EventType(_NORMAL, "Every task has its first attempt."),
        "plan_completed": EventType(_NORMAL, "All tasks of the plan have landed."),
        "plan_evaluated": EventType(
            _NORMAL, "The complete gate failed before the verification, and a task was added to fix it."
        ),
        "docs_flagged": EventType(
            _NORMAL, "An agent says that business documents have to follow its change."
        ),
        "docs_due": EventType(
            _NORMAL,
            "Business documents are not up to date before the verification, and a task was added for it.",
        ),
        "evaluation_due": EventType(
            _NORMAL, "The tasks of a track have landed, and a task was added to evaluate what they made."
        ),
        "plan_evaluating": EventType(
            _LOW, "The complete gate runs before the verification; a task may still fix what it finds."
        ),
        "plan_verifying": EventType(_NORMAL, "The complete gate runs on the integrated branch."),
        "plan_verified": EventType(_HIGH, "The complete gate passed on the final tree."),
        "plan_failed": EventType(_HIGH, "The plan ended without being verified."),
        "plan_held": EventType(_HIGH, "The plan cannot continue without you."),
        "plan_reopened": EventType(_NORMAL, "A person gave an ended plan more to do."),
        "plan_cancelled": EventType(_HIGH, "The plan was cancelled by a person."),
        "plan_cleaned": EventType(_NORMAL, "You removed what the ended plan kept in the repository."),
        "plan_rolled_back": EventType(_HIGH, "A person took landed work back out of the plan branch."),
        "task_reopened": EventType(_HIGH, "A person's decision gave the task another attempt."),
        "task_rejected": EventType(_NORMAL, "A person rejected work of a task that is queued already."),
        "task_interrupted": EventType(_NORMAL, "A person ended the agent of the task, which begins again."),
        "task_taken_over": EventType(_HIGH, "You work on the task instead of an agent."),
        "task_handed_back": EventType(_HIGH, "A person's own work on the task is checked like any other."),
        "task_not_accepted": EventType(_HIGH, "What a person handed back did not pass; it stays with them."),
        "task_given_back": EventType(_NORMAL, "You gave the task back to Loopwright."),
        "results_reviewed": EventType(_NORMAL, "You reviewed what landed."),
        "plan_forced": EventType(_HIGH, "You let a plan run that its evaluation refuses."),
        "source_edited": EventType(_HIGH, "A person changed the work source, and the plan follows."),
        "checks_kept": EventType(
            _HIGH,
            "The work source asks for other checks, which an agent could have written or which cannot fail: "
            "the old ones hold.",
        ),
        "source_not_followed": EventType(
            _HIGH, "The work source was changed in a way that needs a command; the plan stays unchanged."
        ),
        "source_not_told": EventType(
            _HIGH, "Status could not be written back to the work source; Loopwright tries again."
        ),
        "source_told": EventType(_NORMAL, "Status was written back to a work source after earlier failures."),
        "source_given_up": EventType(
            _HIGH,
            "The work source has another plan, or is gone: its status is written only if it comes back.",
        ),
        "source_not_merged": EventType(
            _HIGH,
            "You changed lines of a tracked work source that the plan branch changed too: its copy lacks your change.",
        ),
        "source_unreadable": EventType(
            _HIGH, "The work source was changed and cannot be read; the plan continues unchanged."
        ),
        "branch_moved": EventType(
            _HIGH, "The plan branch got commits from elsewhere; work continues from there."
        ),
        "branch_restored": EventType(
            _HIGH, "The plan branch was changed outside Loopwright. The change was reverted."
        ),
        "branch_rewritten": EventType(
            _HIGH, "The plan branch was rewritten outside Loopwright; the loop waits for you."
        ),
        "controller_moved": EventType(
            _NORMAL, "The controller of an orchestrator folder moved to another stage."
        ),
        "controller_blocked": EventType(
            _HIGH, "The controller of an orchestrator folder recorded what blocks it."
        ),
        "round_began": EventType(_NORMAL, "A round of an orchestrator folder began."),
        "round_moved": EventType(_NORMAL, "A round moved to another stage."),
        "round_troubled": EventType(_HIGH, "A round cannot leave its stage; the payload says why."),
        "round_merged": EventType(_HIGH, "A round was merged into the base branch."),
        "round_dropped": EventType(
            _NORMAL, "The planner asked for another roadmap, so its round was dropped."
        ),
        "roadmap_update_moved": EventType(
            _NORMAL, "A change of a roadmap's meaning moved to another status."
        ),
        "roadmap_revised": EventType(_HIGH, "Another revision of the roadmap is active."),
        "rounds_ended": EventType(_HIGH, "A condition stopped the loop over a prompt."),
        "finish_begun": EventType(_NORMAL, "The plan's result is being merged or pushed."),
        "finish_checked_again": EventType(
            _LOW, "The base branch moved, so the result is built and gated again."
        ),
        "finish_landing": EventType(
            _LOW, "The commit for the base branch, or to push, passed its gate and is recorded."
        ),
        "finish_done": EventType(_HIGH, "The plan's work is in the base branch, or in a pull request."),
        "finish_refused": EventType(_HIGH, "The plan's result was not merged; no branch moved."),
        "task_queued": EventType(_LOW, "The task waits for its turn."),
        "task_started": EventType(_NORMAL, "An attempt at the task began."),
        "task_completed": EventType(_NORMAL, "The task landed."),
        "task_failed": EventType(_HIGH, "Loopwright gave up on the task."),
        "task_awaiting": EventType(_HIGH, "The task waits for a person's answer."),
        "task_resumed": EventType(_NORMAL, "The task continues after an answer."),
        "task_reset": EventType(_NORMAL, "A person let a task start over with no attempt used up."),
        "task_injected": EventType(_NORMAL, "A person added a task to the plan."),
        "priority_set": EventType(_NORMAL, "A person changed the priority of a loop or a task."),
        "agent_set": EventType(_NORMAL, "A person gave a loop or a task to another agent or model."),
        "task_retried": EventType(_NORMAL, "Another attempt at the task is due."),
        "task_healing": EventType(
            _HIGH,
            "The task failed for good, and `auto_heal` tries something else; the payload says what and why.",
        ),
        "task_split": EventType(
            _HIGH, "The task was split: smaller tasks come first, and then it is checked as a whole."
        ),
        "parts_added": EventType(_NORMAL, "Smaller tasks were put before a task, on request."),
        "split_undone": EventType(
            _NORMAL, "The open parts of a split task were taken out of the plan again."
        ),
        "dependency_bypassed": EventType(
            _HIGH,
            "A task is tried without one that it needs and that failed: its own checks tell whether it needs it.",
        ),
        "dependency_restored": EventType(
            _NORMAL, "A task did not pass its checks without one that it needs: it waits for it again."
        ),
        "healing_ended": EventType(_NORMAL, "A healing step ended: healed, failed, or withdrawn."),
        "task_cancelled": EventType(_NORMAL, "The task was cancelled by a person."),
        "attempt_preparing": EventType(_LOW, "A workspace is being made."),
        "attempt_working": EventType(_LOW, "The agent has its workspace."),
        "attempt_waiting": EventType(_NORMAL, "The attempt is parked; its work is kept."),
        "attempt_checking": EventType(_LOW, "The result is being checked."),
        "attempt_landing": EventType(_LOW, "The checked result is about to land."),
        "attempt_landed": EventType(_NORMAL, "The checked result is on the plan branch."),
        "attempt_rejected": EventType(_NORMAL, "The attempt failed its checks or its review."),
        "attempt_broken": EventType(_NORMAL, "The attempt ended for a reason that is not the work's fault."),
        "attempt_cancelled": EventType(_NORMAL, "The attempt was cancelled."),
        "attempt_leg_started": EventType(_LOW, "A worker committed to a leg of the attempt."),
        "attempt_cleaned": EventType(_LOW, "The workspace was removed after its work was proven kept."),
        "alert_acknowledged": EventType(_LOW, "A person acknowledged an alert; the payload names it."),
        "attempt_quarantined": EventType(_HIGH, "A workspace could not be saved and was left in place."),
        "run_started": EventType(_NORMAL, "A process was started."),
        "run_ended": EventType(_NORMAL, "A process ended."),
        "run_awaiting": EventType(_LOW, "A process ended because it needs a person's answer."),
        "budget_near": EventType(_HIGH, "80 % of the budget is spent."),
        "question_asked": EventType(_HIGH, "A run needs a person to answer something."),
        "question_joined": EventType(_LOW, "Another run waits for the answer to the same question."),
        "question_answered": EventType(_NORMAL, "A person answered a question."),
        "question_expired": EventType(_HIGH, "You did not answer a question in time."),
        "question_withdrawn": EventType(_LOW, "The answer is no longer needed."),
        "scope_left": EventType(
            _HIGH, "An attempt changed files that its task had not declared; it is still judged."
        ),
        "trouble_found": EventType(
            _HIGH, "The monitor found that something goes wrong; the alert says what."
        ),
        "lesson_proposed": EventType(_NORMAL, "A lesson for agents waits for your approval."),
        "lesson_tried": EventType(
            _NORMAL, "You approved a lesson: half of the tasks that it is meant for get it."
        ),
        "lesson_kept": EventType(_NORMAL, "A lesson was measured and helps."),
        "lesson_removed": EventType(_NORMAL, "A lesson was removed; the payload says why."),
        "limits_set": EventType(_NORMAL, "You changed a plan's cost limits."),
        "work_discovered": EventType(_NORMAL, "An agent found work outside its task, and left it."),
        "discovery_accepted": EventType(_NORMAL, "You made discovered work a task or a plan."),
        "discovery_dismissed": EventType(_LOW, "You dismissed discovered work."),
        "task_handed_on": EventType(
            _HIGH, "An agent or model could not do the task; the next of `fallback` takes it over for good."
        ),
        "account_changed": EventType(
            _NORMAL, "An attempt continues with another account of its agent, in a new conversation."
        ),
        "envelope_closed": EventType(_HIGH, "An account allows no more runs; the tasks that need it wait."),
        "envelope_probing": EventType(_LOW, "One attempt finds out whether a closed account is open again."),
        "envelope_still_closed": EventType(_LOW, "The account was found closed once more."),
        "envelope_opened": EventType(
            _NORMAL, "An account is open again; the tasks that waited for it continue."
        ),
        "checks_contradicted": EventType(
            _NORMAL,
            "The work contradicts existing checks; the agent has one turn to keep them or to say why.",
        ),
        "review_asked": EventType(_NORMAL, "An independent reviewer reads the work before it lands."),
        "review_ended": EventType(_NORMAL, "A review of the work ended."),
        "look_ended": EventType(_NORMAL, "A QA review ended."),
        "gate_judged": EventType(_NORMAL, "A gate gave its verdict on a tree."),
        "checkout_changed": EventType(_HIGH, "Your own checkout changed while an agent was running."),
        "disk_low": EventType(_HIGH, "No new work starts: the disk is almost full."),
        "disk_free": EventType(_NORMAL, "The disk has free space again, and work continues."),
        "recordings_removed": EventType(
            _NORMAL, "Recordings of ended plans were deleted: they took too much disk space."
        ),
        "worker_joined": EventType(_LOW, "A worker joined the home."),
        "worker_left": EventType(_LOW, "A worker left the home."),
        "worker_lost": EventType(_HIGH, "A worker stopped responding; its work is taken over."),
        "command_applied": EventType(_LOW, "A user's command was carried out."),
        "command_refused": EventType(_NORMAL, "A user's command could not be carried out."),
    }
)


def happened(
    type: str,
    actor: str,
    *,
    loop: Loop | None = None,
    plan: Plan | None = None,
    task: Task | None = None,
    attempt: Attempt | None = None,
    run: Run | None = None,
    project_id: str | None = None,
    **payload: Any,
) -> Event:
    """Build an event of a known type, with the ids of the rows that it is about."""
    project = project_id or (plan.project_id if plan else loop.project_id if loop else None)
    plan_id = plan.id if plan else _first(task, attempt, run)
    return Event(
        type=type,
        actor=actor,
        importance=CATALOGUE[type].importance,
        project=project,
        loop=loop.id if loop else plan.loop_id if plan else None,
        plan=plan_id,
        task=task.id if task else attempt.task_id if attempt else run.task_id if run else None,
        attempt=attempt.id if attempt else run.attempt_id if run else None,
        run=run.id if run else None,
        payload=payload,
    )


def _first(*rows: Task | Attempt | Run | None) -> str | None:
    return next((row.plan_id for row in rows if row is not None), None)
