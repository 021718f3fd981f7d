"""Prepare an agent's prompt and limits: `gather` reads the rows and the repository, `brief` combines the facts."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from loopwright.core.gates.contradictions import has_had_its_turn
from loopwright.core.gates.gates import task_commands
from loopwright.core.healing.diagnosis import Diagnosis
from loopwright.core.healing.earlier_tries import Try
from loopwright.core.policy.rounds import loops
from loopwright.core.prompts import prompts
from loopwright.core.prompts.prompts import areas_of, look_prompt, reviewer
from loopwright.core.replies import investigations, qa
from loopwright.core.replies.reviews import SCHEMA, Finding, blocking
from loopwright.core.rows.model import Attempt, Plan, Project, Review, Role, Run, Task
from loopwright.core.values.accounts import usual
from loopwright.core.values.errors import Refused
from loopwright.core.values.patches import Patch
from loopwright.core.values.permissions import Access, Permissions
from loopwright.core.values.states import ReviewState, RunState
from loopwright.core.values.templates import Template, own_path, replaced
from loopwright.engine.attempt.agent_ends import last_answer
from loopwright.engine.money import quotas, spending
from loopwright.engine.rows import lessons, questions
from loopwright.engine.rows.attempts import diagnosis_of, tries_before
from loopwright.engine.rows.legs import Rows
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.world import World
from loopwright.ports import AgentRequest, LoopTools, ToolServer, Tx, able
from loopwright.prompts import packaged

READS = Permissions(access=Access.READ_ONLY)
"""The permissions of a reviewer, whatever the plan allows its agents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFixes:
    """What an attempt's agent should fix."""

    findings: tuple[Finding, ...] = ()
    is_new: bool = False
    """Whether the agent gets it for the first time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All facts that decide the prompt and the limits of a run."""

    rows: Rows
    run: Run
    template: Template
    """The template of its prompt."""
    agent: str
    can: frozenset[str]
    """The agent's capabilities."""
    options: Mapping[str, Any] = field(default_factory=dict)
    workspace: Path
    directory: Path
    contained: bool
    permissions: Permissions
    account: str
    """The account that it uses."""
    max_cost_micros: int | None = None
    tools: Mapping[str, ToolServer] = field(default_factory=dict)
    """The tools for questions to the user, if it may ask and accepts tools."""
    loop_tools: LoopTools | None = None
    """The tools of a manager or an orchestrator."""
    earlier: tuple[Run, ...] = ()
    """The runs with the same role that started before it, the newest first."""
    tries: tuple[Try, ...] = ()
    """The attempts before this one that were rejected."""
    answers: tuple[tuple[str, str], ...] = ()
    """The user's answers to the attempt's questions."""
    lessons: tuple[str, ...] = ()
    """Lessons of the project that match the task."""
    review_fixes: ReviewFixes = field(default_factory=ReviewFixes)
    last_answer: str = ""
    """The answer of the attempt before this one, if agents only answer."""
    documents: Mapping[str, str] = field(default_factory=dict)
    """The text of the plan's documents, by their paths in the workspace."""
    diagnosis: Diagnosis | None = None
    """The computed diagnosis of the task; None unless the agent is an investigator."""
    review: Review | None = None
    """The review that it belongs to, and the change to review; None unless the agent is a reviewer."""
    patch: Patch | None = None


def brief(facts: Facts) -> AgentRequest:
    """Return an agent's prompt, its tools and its limits."""
    rows, can = facts.rows, facts.can
    return AgentRequest(
        prompt=_prompt(facts),
        workspace=facts.workspace,
        run_directory=facts.directory,
        subfolder=rows.project.subfolder,
        model=facts.run.model,
        permissions=facts.permissions,
        contained=facts.contained,
        session_ref=_conversation(facts),
        schema=_schema(facts) if "schema" in can else None,
        tools=_tools(facts),
        max_cost_micros=facts.max_cost_micros if "budget" in can else None,
        options=facts.options,
    )


def _prompt(facts: Facts) -> str:
    rows, can = facts.rows, facts.can
    plan, task, attempt = rows.plan, rows.task, rows.attempt
    gates, resumed = task_commands(plan, task), bool(facts.earlier)
    by_schema, asks_by_tool = "schema" in can, "tools" in can
    if facts.review is not None:
        return reviewer(
            facts.template,
            plan,
            task,
            attempt,
            facts.review,
            need(facts.patch, "the change"),
            gates=gates,
            by_schema=by_schema,
            goes_on=_conversation(facts) is not None,
        )
    if facts.run.role is Role.INVESTIGATOR:
        return prompts.investigator(
            facts.template,
            plan,
            task,
            attempt,
            gates=gates,
            diagnosis=facts.diagnosis,
            tries=facts.tries,
            resumed=resumed,
            by_schema=by_schema,
        )
    if task.type == qa.TYPE:
        return look_prompt(
            facts.template,
            plan,
            task,
            attempt,
            gates=gates,
            evaluators=[packaged(f"parts/evaluator_{one}").fill({}) for one in areas_of(plan, task)[1]]
            if task.origin == qa.EVALUATION
            else [],
            resumed=resumed,
            answers=facts.answers,
            asks_by_tool=asks_by_tool,
            by_schema=by_schema,
        )
    if plan.policy.answer is not None:
        return prompts.answering(
            facts.template,
            task,
            attempt,
            plan.policy.answer,
            by_schema=by_schema,
            last=facts.last_answer,
            resumed=resumed,
            answers=facts.answers,
            asks_by_tool=asks_by_tool,
        )
    contradicted = attempt.gate_files.contradicted if attempt.gate_files and has_had_its_turn(attempt) else ()
    return prompts.implementer(
        facts.template,
        plan,
        task,
        attempt,
        gates=gates,
        resumed=resumed and not facts.review_fixes.is_new and not contradicted,
        answers=facts.answers,
        asks_by_tool=asks_by_tool,
        findings=facts.review_fixes.findings,
        contradicted=contradicted,
        documents=facts.documents,
        tries=facts.tries,
        lessons=facts.lessons,
    )


def learns(rows: Rows, run: Run) -> bool:
    """Return whether a run gets lessons: only a run that does a task does."""
    return run.role is Role.IMPLEMENTER and rows.task.type != qa.TYPE and rows.plan.policy.answer is None


def _conversation(facts: Facts) -> str | None:
    """Return the conversation to continue: only the same agent on the same account has it."""
    before = facts.earlier[0] if facts.earlier else None
    if before is None or "resume" not in facts.can:
        return None
    same = (before.agent, before.account) == (facts.run.agent, facts.account)
    return before.session_ref if same else None


def _schema(facts: Facts) -> Mapping[str, Any] | None:
    """Return the schema of an agent's answer; None if its work counts, not its words."""
    policy = facts.rows.plan.policy
    if facts.review is not None:
        return SCHEMA
    if facts.run.role is Role.INVESTIGATOR:
        return investigations.SCHEMA
    if policy.answer is not None:
        return policy.answer.schema
    task = facts.rows.task
    return qa.schema(*areas_of(facts.rows.plan, task)) if task.type == qa.TYPE else None


def _tools(facts: Facts) -> Mapping[str, ToolServer]:
    if "tools" not in facts.can:
        return {}
    more = {facts.loop_tools.name: facts.loop_tools.server} if facts.loop_tools is not None else {}
    return {**(facts.tools if _asks(facts) else {}), **more}


def _asks(facts: Facts) -> bool:
    """Return whether a run may ask the user; a reviewer and an investigator only give their opinion."""
    answer = facts.rows.plan.policy.answer
    return facts.run.role not in (Role.REVIEWER, Role.INVESTIGATOR) and (answer is None or answer.asks)


# --- reading the facts -----------------------------------------------------------------------------------


async def gather(world: World, rows: Rows, run: Run, *, contained: bool) -> Facts:
    """Read the facts for a run; a run that has already started keeps its first ones."""
    attempt, policy = rows.attempt, rows.plan.policy
    agent = world.agent(run.agent or attempt.agent)
    options = policy.agents.get(agent.name, {})
    directory = world.paths.run(run.id)
    tools = world.tools(directory)

    review: Review | None = None
    if run.role is Role.REVIEWER:
        review = need(await world.store.read(lambda tx: tx.get(Review, run.label)), "the review")
    template = await template_of(world, rows.project, rows.plan, rows.task, run, review)

    def load(tx: Tx) -> Facts:
        runs = tx.find(Run, attempt_id=attempt.id, role=run.role, label=run.label, order_by=("-created_at",))
        others = [one for one in runs if one.id != run.id]
        queued = run.state is RunState.QUEUED
        # If all accounts are closed, the choice does not matter: `admit` parks the attempt.
        account = run.account or quotas.account_of(tx, world.accounts, attempt, run)
        return Facts(
            rows=rows,
            run=run,
            template=template,
            agent=agent.name,
            can=able(agent, options),
            options=options,
            workspace=_place_of(world, attempt, review),
            directory=directory,
            contained=contained,
            permissions=run.permissions or _permissions(tx, rows, run, review, contained=contained),
            account=account or usual(world.accounts, run.agent or attempt.agent),
            max_cost_micros=spending.allowance(tx, world, rows.plan, run) if queued else run.max_cost_micros,
            tools=tools,
            loop_tools=_loop_tools(world, rows, directory),
            earlier=tuple(one for one in others if one.started_at),
            tries=() if loops(rows.plan, rows.task) else tries_before(tx, attempt),
            lessons=lessons.told(tx, rows.plan, rows.task, attempt) if learns(rows, run) else (),
            answers=tuple(
                (one.text, one.answer) for one in questions.of_attempt(tx, attempt) if one.answer is not None
            ),
            review_fixes=review_fixes(tx, attempt, others[0] if others else None),
            review=review,
            diagnosis=diagnosis_of(tx, rows.task) if run.role is Role.INVESTIGATOR else None,
        )

    facts = await world.store.read(load)
    if rows.plan.documents and review is None:
        facts = replace(facts, documents=await _documents(world, rows))
    if review is not None:
        patch = await world.repository(rows.project).patch(review.parent_sha, review.candidate_sha)
        return replace(facts, patch=patch)
    if policy.answer is not None and rows.task.type != qa.TYPE and attempt.n > 1:
        return replace(facts, last_answer=await last_answer(world, rows))
    return facts


def _loop_tools(world: World, rows: Rows, directory: Path) -> LoopTools | None:
    answer = rows.plan.policy.answer
    if answer is None or not answer.acts:
        return None
    found = world.loop_tools(answer.acts, directory)
    if found is None:
        raise Refused("the token of its tools is gone, so the agent could change nothing", code="tools_gone")
    return found


async def _documents(world: World, rows: Rows) -> dict[str, str]:
    """Return the text of the plan's documents; a document outside the attempt's base commit has none."""
    names = {
        posixpath.normpath(posixpath.join(rows.project.subfolder, one)): one for one in rows.plan.documents
    }
    sha = rows.attempt.base_sha or rows.plan.base_sha
    found = await world.repository(rows.project).files_at(sha, list(names))
    texts = {names[path]: content.decode("utf-8", "replace") for path, content in found.items()}
    return {one: texts.get(one, "") for one in rows.plan.documents}


def _place_of(world: World, attempt: Attempt, review: Review | None) -> Path:
    """Return where a run works: in its attempt's workspace, or in a tree that is removed after the review."""
    return Path(need(attempt.workspace, "a workspace")) if review is None else world.paths.tree(review.id)


def review_fixes(tx: Tx, attempt: Attempt, before: Run | None) -> ReviewFixes:
    """Return the blocking findings with which an attempt was sent back."""
    review = tx.get(Review, attempt.review_id) if attempt.review_id else None
    if review is None or review.state is not ReviewState.BLOCKING:
        return ReviewFixes()
    is_new = before is not None and review.ended_at is not None and before.created_at < review.ended_at
    return ReviewFixes(findings=blocking(review.findings), is_new=is_new)


def _permissions(tx: Tx, rows: Rows, run: Run, review: Review | None, *, contained: bool) -> Permissions:
    answers = run.role is Role.INVESTIGATOR or rows.plan.policy.answer is not None
    if review is not None or answers:
        return READS
    return questions.permissions(tx, rows.plan, rows.task, rows.attempt, contained=contained)


# The template of a run's prompt: the project's own one at the plan's base commit, else the packaged one.


async def template_of(
    world: World, project: Project, plan: Plan, task: Task, run: Run, review: Review | None
) -> Template:
    """Return the template for an agent's role in this task; raise `BadConfig` for a wrong one."""
    role = Role.INVESTIGATOR.value if run.role is Role.INVESTIGATOR else _role(plan, task, review)
    path = own_path(project.subfolder, role)
    found = await world.repository(project).files_at(plan.base_sha, [path])
    return replaced(packaged(role), path, found[path]) if path in found else packaged(role)


def _role(plan: Plan, task: Task, review: Review | None) -> str:
    if review is not None:
        return "reviewer"
    if task.type == qa.TYPE:
        return "execution-evaluator" if task.origin == qa.EVALUATION else "qa"
    return plan.policy.answer.role if plan.policy.answer is not None else "implementer"
