"""What follows from the entries of a receipt: outcomes, sums and gaps, from its facts and nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from loopwright.core.containment import Containment
from loopwright.core.failures import Failure
from loopwright.core.findings import VerdictStatus
from loopwright.core.gate_files import GateFiles
from loopwright.core.gates import Commands, after_setup, each_once
from loopwright.core.limits import limits_of
from loopwright.core.model import AUTHORS, Outcome, Usage
from loopwright.core.policy import GateCommand
from loopwright.core.qa import TYPE
from loopwright.core.receipt_checkout import checkout_gaps
from loopwright.core.receipt_looks import is_passed_by_word, look_gaps
from loopwright.core.receipt_verdicts import Verdicts, speaking
from loopwright.core.receipt_verdicts import latest as verdicts_of
from loopwright.core.reviews import is_capped
from loopwright.core.scopes import strayed
from loopwright.core.states import AttemptState, FinishState, PlanState, ReviewState, TaskState
from loopwright.core.verdicts import gate_key, plan_outcome, task_outcome

Json = dict[str, Any]

USAGE: Final = tuple(Usage.__dataclass_fields__)
_QUOTA: Final = frozenset({Failure.USAGE_LIMIT.value, Failure.RATE_LIMIT.value})


def derive(body: Mapping[str, Any]) -> Json:
    """Compute outcomes, sums and gaps from the entries alone."""
    plan = body["plan"]
    latest = verdicts_of(body)
    outcomes = {}
    for task in body["tasks"]:
        commands = task_asked(plan, task)
        steered = gate_files_of(task)
        trees = [task["tree"], *([steered["pinned_tree"]] if steered["pinned_tree"] else [])]
        asked = [commands, pinned_asked(plan, task)]
        # Of commands that name new tests alone none may be left for the files as they were.
        pairs = [
            (tree, each) for tree, each in zip(trees, asked, strict=False) if each or tree == task["tree"]
        ]
        found = [_found(latest.get((tree, gate_key(each))), each) for tree, each in pairs]
        # With the gate's files as they were and as they are: both must have passed.
        held, held_tree = held_asked(plan, task), trees[-1]
        if held:
            found.append(_found(latest.get((held_tree, gate_key(held))), held))
        refused = [status for status in found if status is not VerdictStatus.PASSED]
        by_word = is_passed_by_word(task)
        outcomes[task["id"]] = task_outcome(
            status=TaskState(task["status"]),
            landed=task["landed_sha"] is not None,
            verdict=VerdictStatus.UNVERIFIED if by_word else refused[0] if refused else VerdictStatus.PASSED,
            waits_for_quota=_waits_for_quota(task),
            looked=task["type"] == TYPE,
            # Where nothing was changed there is nothing that could be looked at.
            capped=(task["landed_sha"] is not None and _is_capped(body, task))
            or any(_is_excused(latest, [tree], gate_key(each)) for tree, each in pairs)
            or _is_excused(latest, [held_tree], gate_key(held)),
        )
    whole = plan_asked(body)
    final = latest.get((plan["result_tree"], gate_key(whole)))
    spent = [run for run in body["runs"] if run["agent"] is not None and run["started_at"] is not None]
    unseen = [commands for _, commands in unseen_asked(body)]
    statuses = [_found(latest.get((plan["result_tree"], gate_key(one))), one) for one in (whole, *unseen)]
    outcome = plan_outcome(
        tasks=list(outcomes.values()),
        final=next(
            (status for status in statuses if status is not VerdictStatus.PASSED), VerdictStatus.PASSED
        ),
        cancelled=plan["status"] == PlanState.CANCELLED.value,
        capped=bool(plan["not_ours"])
        or any(_is_excused(latest, [plan["result_tree"]], gate_key(one)) for one in (whole, *unseen)),
    )
    return {
        "outcome": outcome.value,
        "outcomes": {task_id: value.value for task_id, value in outcomes.items()},
        "cost": {
            **_sum([run["cost_micros"] for run in spent]),
            "estimated_runs": sum(run["cost_estimated"] for run in spent),
        },
        "usage": {name: _sum([run["usage"][name] for run in spent]) for name in USAGE},
        "not_checked": _gaps(body, final, spent),
    }


def _found(entry: Mapping[str, Any] | None, commands: Sequence[GateCommand]) -> VerdictStatus | None:
    """Return what a verdict says, provided that it ran exactly these commands and its own facts agree."""
    if not commands:
        return VerdictStatus.UNVERIFIED
    if entry is None:
        return None
    status = VerdictStatus(entry["status"])
    asked = [(c.name, c.command) for c in commands]
    ran = [(c["name"], c["command"]) for c in entry["commands"]]
    counts = entry["checks"]
    again = {c["command"] for rerun in entry["reruns"] for c in rerun["commands"]}
    clean = all(
        not c["timed_out"]
        and (c["exit_code"] == 0 or c["known_failures"] or (c["flaky"] and c["command"] in again))
        for c in entry["commands"]
    )
    agrees = asked == ran and clean and counts["passed"] > 0 and not counts["failed"] and not counts["error"]
    return VerdictStatus.FAILED if status is VerdictStatus.PASSED and not agrees else status


def _is_excused(latest: Verdicts, trees: Sequence[str | None], key: str) -> bool:
    """Say whether these trees passed with something open: old failures, flaky checks, a baseline nobody has."""
    found = [latest[tree, key] for tree in trees if tree is not None and (tree, key) in latest]
    return any(
        entry["unknown_before"]
        or entry["left_open"]
        or any(command["known_failures"] or command["flaky"] for command in entry["commands"])
        for entry in found
    )


def gate_outputs(verdict: Mapping[str, Any]) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Yield each command that a verdict ran, again where it did, with the directory and position of its output."""
    yield from ((verdict["run_id"], n, command) for n, command in enumerate(verdict["commands"], 1))
    for rerun in verdict["reruns"]:
        directory = f"{verdict['run_id']}/{rerun['folder']}"
        yield from ((directory, n, command) for n, command in enumerate(rerun["commands"], 1))


def gate_files(command: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield what else was written down of a command: how its key ends, what it is, and its hash."""
    name = command["name"]
    if command["kept_sha256"] not in ("", command["output_sha256"]):
        yield ".kept", f"what was kept of the output of {name!r}", command["kept_sha256"]
    if command["seen_sha256"]:
        yield ".seen", f"what was seen inside {name!r}", command["seen_sha256"]
    if command["report_sha256"]:
        yield ".xml", f"the report of {name!r}", command["report_sha256"]


def gate_files_of(task: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the attempt that landed did to the gate's files."""
    landed = [a for a in task["attempts"] if a["candidate_sha"] == task["landed_sha"] is not None]
    facts = next((a["gate_files"] for a in landed), None)
    return facts or asdict(GateFiles())


def strayed_in(task: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the attempt that landed changed outside of what the task had declared."""
    landed = [a for a in task["attempts"] if a["candidate_sha"] == task["landed_sha"] is not None]
    return strayed(landed[0]["touched"], task["scope"]) if landed else ()


def review_of(body: Mapping[str, Any], task: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the review of exactly what a task landed; None when nobody looked."""
    landed = [a for a in task["attempts"] if a["candidate_sha"] == task["landed_sha"] is not None]
    named = next((a["review_id"] for a in landed), None)
    return next((one for one in body["reviews"] if one["id"] == named), None)


def _is_capped(body: Mapping[str, Any], task: Mapping[str, Any]) -> bool:
    review = review_of(body, task)
    return is_capped(
        GateFiles(**gate_files_of(task)),
        review["state"] if review else None,
        shown_whole=review is not None and review["shown_whole"],
        held_out=bool(task["held_out"]),
        unseen_proof=body["plan"]["policy"]["unseen_proof"],
    )


def task_asked(plan: Mapping[str, Any], task: Mapping[str, Any]) -> Commands:
    """Return the commands that a receipt's task had to pass."""
    return after_setup(
        setup_of(plan), each_once(read_commands(task["acceptance"]), read_commands(plan["gates"]))
    )


def pinned_asked(plan: Mapping[str, Any], task: Mapping[str, Any]) -> Commands:
    """Return those that it had to pass with the gate's files as they were, where it changed any."""
    left_out = gate_files_of(task)["pinned_without"]
    both = each_once(read_commands(task["acceptance"]), read_commands(plan["gates"]))
    return after_setup(setup_of(plan), tuple(one for one in both if one.command not in left_out))


def acceptance_of(plan: Mapping[str, Any], task: Mapping[str, Any]) -> Commands:
    """Return the commands of a receipt's task alone."""
    return after_setup(setup_of(plan), read_commands(task["acceptance"]))


def held_asked(plan: Mapping[str, Any], task: Mapping[str, Any]) -> Commands:
    """Return the checks that a receipt's task had to pass unseen."""
    return after_setup(setup_of(plan), read_commands([one["check"] for one in task["held_out"]]))


def plan_asked(body: Mapping[str, Any]) -> Commands:
    """Return the commands that a receipt's final tree had to pass."""
    plan = body["plan"]
    wanted = [task for task in body["tasks"] if task["status"] != TaskState.CANCELLED.value]
    acceptance = [command for task in wanted for command in task["acceptance"]]
    return after_setup(setup_of(plan), each_once(read_commands(plan["gates"]), read_commands(acceptance)))


def unseen_asked(
    body: Mapping[str, Any], chosen: Sequence[str] = ()
) -> list[tuple[Mapping[str, Any], Commands]]:
    """Return the tasks from which checks were held out, with what a tree that has all of their work had to pass unseen.

    `chosen` are the ids of those whose work it has; otherwise it has that of all.
    """
    return [
        (task, held_asked(body["plan"], task))
        for task in body["tasks"]
        if task["held_out"]
        and task["status"] != TaskState.CANCELLED.value
        and (not chosen or task["id"] in chosen)
    ]


def finish_asked(body: Mapping[str, Any], finish: Mapping[str, Any]) -> Commands:
    """Return the commands that what a plan's end took over had to pass."""
    if not finish["tasks"]:
        return plan_asked(body)
    plan = body["plan"]
    acceptance = [
        command for task in body["tasks"] if task["id"] in finish["tasks"] for command in task["acceptance"]
    ]
    return after_setup(setup_of(plan), each_once(read_commands(plan["gates"]), read_commands(acceptance)))


def verdict_on(body: Mapping[str, Any], tree: str, commands: Commands) -> bool:
    """Say whether a tree has passed these commands, or there were none to pass."""
    found = _found(verdicts_of(body).get((tree, gate_key(commands))), commands)
    return found in (VerdictStatus.PASSED, VerdictStatus.UNVERIFIED)


def gates_asked(plan: Mapping[str, Any]) -> Commands:
    """Return the commands that were run on the tree that a receipt's plan started from."""
    return after_setup(setup_of(plan), read_commands(plan["gates"]))


def setup_of(plan: Mapping[str, Any]) -> GateCommand | None:
    """Return the command that made every tree of a receipt's plan ready."""
    return GateCommand(**plan["setup"]) if plan["setup"] else None


def read_commands(commands: Sequence[Mapping[str, Any]]) -> Commands:
    """Return commands as a receipt tells them."""
    return tuple(GateCommand(**command) for command in commands)


def _waits_for_quota(task: Mapping[str, Any]) -> bool:
    if task["status"] not in (TaskState.QUEUED.value, TaskState.RUNNING.value):
        return False
    waiting = [a for a in task["attempts"] if a["state"] == AttemptState.WAITING.value]
    return task["failure"] in _QUOTA or any(
        a["failure"] in _QUOTA or a["wait_reason"] in _QUOTA for a in waiting
    )


def _sum(values: Sequence[int | None]) -> Json:
    known = [value for value in values if value is not None]
    total = sum(known) if known or not values else None
    return {"total": total, "complete": len(known) == len(values), "unknown_runs": len(values) - len(known)}


def open_points(receipt: Mapping[str, Any], task: str | None = None) -> list[str]:
    """Name what keeps a receipt, or one of its tasks by its key, from saying more than verified with gaps."""
    final = verdicts_of(receipt).get((receipt["plan"]["result_tree"], gate_key(plan_asked(receipt))))
    points = []
    if task is None:
        points += _excused_gaps(final["commands"] if final else ()) + _result_gaps(receipt["plan"], final)
    whole = (Outcome.VERIFIED.value, Outcome.NO_CHANGE_PROVEN.value)
    for one in receipt["tasks"]:
        if task in (None, one["key"]) and one["outcome"] not in whole:
            points += _task_gaps(receipt, one) or [
                f"task {one['key']!r} is {one['outcome'].replace('_', ' ')}"
            ]
    return points


def _task_gaps(body: Mapping[str, Any], task: Mapping[str, Any]) -> list[str]:
    """Name what speaks against a task, beside what holds for every one of its kind."""
    if task["status"] == TaskState.CANCELLED.value:
        return [f"task {task['key']!r} was cancelled by a person: nothing asks for it"]
    review = review_of(body, task)
    looked = review is not None and review["state"] == ReviewState.CLEAR.value
    reviewed = looked and review is not None and review["shown_whole"]
    seen = _gate_gaps(task, reviewed=reviewed) + _seen_gaps(body["plan"], task, reviewed=reviewed)
    return [*look_gaps(body, task), *seen, *_landing_gaps(body, task), *_unseen_gaps(body, task)]


def _result_gaps(plan: Mapping[str, Any], final: Mapping[str, Any] | None) -> list[str]:
    """Name what of the result no task answers for, and what it was not compared with."""
    gaps = []
    if foreign := [f"{one['sha'][:10]} {one['subject']}" for one in plan["not_ours"]]:
        gaps.append(f"commits on the branch that no task made, seen by gate:all alone: {_listed(foreign)}")
    if steered := sorted({path for one in plan["not_ours"] for path in one["gate_files"]}):
        gaps.append(
            f"those commits changed files of the gate, which judged all that came after: {_listed(steered)}"
        )
    if final and final["unknown_before"]:
        gaps.append(f"the result was not held against how its tests were before: {final['unknown_before']}")
    if final and final["left_open"]:
        gaps.append(
            f"something was left open when the result was judged: {'; '.join(final['left_open'][:10])}"
        )
    return gaps


def _excused_gaps(commands: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name what failed on the final tree and was not held against it."""
    gaps = []
    failing = sum(command["known_failures"] for command in commands)
    if failing:
        gaps.append(f"{failing} tests fail on the result that had failed before the plan: they check nothing")
    flaky = [name for command in commands for name in command["flaky"]]
    if flaky:
        gaps.append(
            f"these failed on the result and passed when they were run again, so they are flaky: {_listed(flaky)}"
        )
    return gaps


def _all_held_out(tasks: Sequence[Mapping[str, Any]]) -> bool:
    landed = [task for task in tasks if task["landed_sha"] is not None]
    return bool(landed) and all(task["held_out"] for task in landed)


def _gate_gaps(task: Mapping[str, Any], *, reviewed: bool) -> list[str]:
    """Name the gate's files that were changed and that no one else has looked at."""
    facts, name = gate_files_of(task), repr(task["key"])
    gaps = []
    for key, words in (
        ()
        if reviewed
        else (
            ("exempt", "changed files of the gate with leave, and no reviewer looked at them"),
            ("acting", "has new tests that judge it and do something that the others see"),
            (
                "pinned_without",
                "has commands that ran only with its own conftest.py, which their new tests need",
            ),
            ("uncompared", "changed files of the gate, and whether they ask for less now was not compared"),
        )
    ):
        if facts[key]:
            gaps.append(f"task {name} {words}: {_listed(facts[key])}")
    if facts["red_proof"] is False:
        gaps.append(
            f"the acceptance of task {name} passed before its work too: it proves nothing"
            if task["acceptance"]
            else f"the project's checks, with the tests of task {name}, pass without its work too: they prove nothing"
        )
    elif facts["red_missing"]:
        gaps.append(
            f"task {name} was to show that its checks fail without its work, and did not: {facts['red_missing']}"
        )
    elif facts["red_proof"] is None and task["acceptance"] and task["landed_sha"] is not None:
        why = f", because {facts['red_skipped']}" if facts["red_skipped"] else ""
        gaps.append(
            f"the acceptance of task {name} was not run before its work{why}: whether it can fail is not known"
        )
    if facts["weakened"]:
        gaps.append(f"task {name} asks for less than before: {_listed(facts['weakened'])}")
    return gaps


def _seen_gaps(plan: Mapping[str, Any], task: Mapping[str, Any], *, reviewed: bool) -> list[str]:
    """Name work that may only look right to its tests, and what only checks judged that its author could see."""
    if reviewed or task["held_out"] or task["landed_sha"] is None:
        return []
    answers, name = gate_files_of(task)["answers"], repr(task["key"])
    said = [f"task {name} may only look right to its tests: {_listed(answers)}"] if answers else []
    if plan["policy"]["unseen_proof"]:
        said.append(
            f"only checks that its author could see have judged task {name}, and unseen_proof asks for more"
        )
    return [f"{one}; have it reviewed, or give it held-out checks" for one in said]


def _unseen_gaps(body: Mapping[str, Any], task: Mapping[str, Any]) -> list[str]:
    """Name what was held out from a task and does not speak for the result."""
    if not task["held_out"] or task["landed_sha"] is None:
        return []
    commands, tree = held_asked(body["plan"], task), body["plan"]["result_tree"]
    found = verdicts_of(body).get((tree, gate_key(commands)))
    if found is None:
        return [f"the held-out checks of task {task['key']!r} ran when it landed, not on the result"]
    if _found(found, commands) is VerdictStatus.PASSED:
        return []
    return [f"the held-out checks of task {task['key']!r} have not passed on the result"]


def _landing_gaps(body: Mapping[str, Any], task: Mapping[str, Any]) -> list[str]:
    """Name what was left open when a task's tree was judged, with its gate's files as they were and as they are."""
    plan, name = body["plan"], repr(task["key"])
    judged = {
        (task["tree"], gate_key(task_asked(plan, task))),
        (gate_files_of(task)["pinned_tree"], gate_key(pinned_asked(plan, task))),
    }
    found = [one for one in speaking(body) if (one["tree"], one["gate_key"]) in judged]
    flaky = sorted({check for one in found for command in one["commands"] for check in command["flaky"]})
    gaps = []
    if flaky:
        gaps.append(
            f"task {name} landed with checks that failed and then passed on its tree: {_listed(flaky)}"
        )
    unknown = sorted({one["unknown_before"] for one in found} - {""})
    if unknown:
        gaps.append(f"task {name} was not held against how its tests were before: {_listed(unknown)}")
    if left := sorted({words for one in found for words in one["left_open"]}):
        gaps.append(f"task {name} left something open when it was judged: {'; '.join(left[:10])}")
    return gaps


def _review_gaps(body: Mapping[str, Any]) -> list[str]:
    """Name what no independent reviewer has looked at, and what a review is not worth."""
    landed = [task for task in body["tasks"] if task["landed_sha"] is not None]
    seen = {task["id"]: review for task in landed if (review := review_of(body, task)) is not None}
    if not seen:
        return ["no independent reviewer looked at the work"]
    gaps = []
    if unseen := [repr(task["key"]) for task in landed if task["id"] not in seen]:
        gaps.append(f"no independent reviewer looked at the work of {_listed(unseen)}")
    runs = {run["id"]: run for run in body["runs"]}
    for task in landed:
        review = seen.get(task["id"])
        if review is None:
            continue
        name = repr(task["key"])
        if review["state"] != ReviewState.CLEAR.value:
            gaps.append(
                f"the review of task {name} came to no result: {review['problem'] or review['state']}"
            )
        if not review["shown_whole"]:
            gaps.append(f"not all of the change of task {name} was shown to its reviewer")
        by = runs.get(review["run_id"], {"agent": None, "model": None})
        authors = [run for run in body["runs"] if run["task_id"] == task["id"] and run["role"] in AUTHORS]
        if any((run["agent"], run["model"]) == (by["agent"], by["model"]) for run in authors):
            gaps.append(f"the reviewer of task {name} was the same agent and model as its author")
    gaps.append("what reviewers say is their opinion: that they looked is a fact, that they are right is not")
    return gaps


def _finish_gaps(body: Mapping[str, Any]) -> list[str]:
    """Name what reached its end without a verdict, because a person took it so."""
    return [
        f"nothing checked what {one['id']} took over: {one['actor']} accepted it"
        for one in body["finishes"]
        if one["state"] == FinishState.FINISHED.value
        and one["verdict_id"] is None
        and one["commit_sha"] != one["target_sha"]
    ]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _gaps(
    body: Mapping[str, Any], final: Mapping[str, Any] | None, spent: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Name in plain words what nobody checked."""
    plan = body["plan"]
    gaps: list[str] = []
    whole = plan_asked(body)
    if not whole:
        gaps.append("nothing is configured to check the final tree")
    elif _found(final, whole) is not VerdictStatus.PASSED:
        gaps.append("gate:all has not passed on exactly the tree of the result")
    elif final and final["checks"]["skipped"]:
        gaps.append(f"{final['checks']['skipped']} checks of gate:all were skipped on the result")
    ran = final["commands"] if final else ()
    gaps += _excused_gaps(ran) + limits_of(ran, held_out=_all_held_out(body["tasks"]))
    gaps += _result_gaps(plan, final)
    for task in body["tasks"]:
        if task["status"] == TaskState.CANCELLED.value:
            gaps.append(f"task {task['key']!r} was cancelled by a person: nothing asks for it")
            continue
        gaps += look_gaps(body, task)
        if not task["acceptance"] and not is_passed_by_word(task):
            by = "gate:all alone checked it" if plan["gates"] else "nothing checked it"
            gaps.append(f"task {task['key']!r} has no acceptance command of its own: {by}")
        review = review_of(body, task)
        looked = review is not None and review["state"] == ReviewState.CLEAR.value
        reviewed = looked and review is not None and review["shown_whole"]
        gaps += _gate_gaps(task, reviewed=reviewed) + _seen_gaps(plan, task, reviewed=reviewed)
        if outside := strayed_in(task):
            gaps.append(f"task {task['key']!r} changed files outside of its scope: {_listed(outside)}")
        gaps += _landing_gaps(body, task)
        gaps += _unseen_gaps(body, task)
        if count := task["criteria"]:
            what = "criterion" if count == 1 else "criteria"
            gaps.append(f"task {task['key']!r} has {count} {what} in words: only commands were run")
    said: dict[tuple[str, str], set[str]] = {}
    for verdict in speaking(body):
        said.setdefault((verdict["tree"], verdict["gate_key"]), set()).add(verdict["status"])
    both = sum(len(statuses) > 1 for statuses in said.values())
    if both:
        gaps.append(f"{both} trees got different verdicts from the same commands: the latest counts")
    for name, words in (
        ("cost_micros", "cost"),
        ("permission_mode", "permission mode"),
        ("agent_version", "agent's version"),
    ):
        unknown = sum(run[name] is None for run in spent)
        if unknown:
            gaps.append(f"the {words} of {unknown} of {len(spent)} agent runs is not known")
    estimated = sum(run["cost_estimated"] for run in spent)
    if estimated:
        gaps.append(f"the cost of {estimated} of {len(spent)} agent runs is an estimate from its tokens")
    for mode in sorted({run["permission_mode"] for run in spent} - {None}):
        count = sum(run["permission_mode"] == mode for run in spent)
        gaps.append(f"{count} agent runs had the permission mode {mode!r}: what else they did is not known")
    # What a person did by hand is no run that a sandbox could contain.
    begun = [
        run
        for run in body["runs"]
        if run["started_at"] is not None and (run["agent"] is not None or run["role"] not in AUTHORS)
    ]
    open_ = sum(run["sandbox"] in (None, Containment.NONE.value) for run in begun)
    if open_:
        gaps.append(
            f"{open_} of {len(begun)} runs had no sandbox around them: they could act on the whole machine"
        )
        # In the words of docs/safety.md, which says why.
        gaps.append(
            "files that git ignores, the branches of other plans, and all outside of the repository were not watched "
            "while they ran"
        )
    return gaps + checkout_gaps(body) + _finish_gaps(body) + _review_gaps(body)
