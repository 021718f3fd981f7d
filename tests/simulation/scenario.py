"""What one simulated run consists of. All of it follows from a seed, and each part can be taken away."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

FAULTS: Final[Mapping[str, str]] = {
    "crash": "a worker is killed before or after a write or an effect",
    "freeze": "a worker is suspended past its lease and wakes up",
    "reboot": "a machine goes down with everything that runs on it",
    "gone": "a machine goes down and never comes back",
    "skew": "the workers' clocks disagree and run at different speeds",
    "slow": "a call takes seconds",
    "store_away": "the database cannot be reached",
    "lost_answer": "a transaction is committed, but its answer is lost",
    "lost_start": "the start of a leg is lost",
    "late_start": "the start of a leg arrives late",
    "double_start": "a leg is run twice",
    "git_trouble": "git fails",
    "agent_hangs": "an agent never ends by itself",
    "agent_lies": "an agent claims to be done and is not",
    "agent_errs": "an agent reports an error",
    "agent_dies": "an agent's keeper disappears without a word",
    "usage_limit": "an agent meets a usage limit, with a reset time or without",
    "auth": "an account is logged out",
    "billing": "an account has no credit left",
    "overload": "the agent's service is overloaded",
    "permission": "agents ask leave for commands",
    "question": "an agent asks a question",
    "no_cost": "an agent does not tell what it cost",
    "gate_flakes": "a gate fails on a good tree, once or however often it is run",
    "gate_dies": "a gate cannot run to its end",
    "conflict": "tasks change the same file",
    "budget": "runs, tasks, plans and days may cost little",
    "pause": "a person pauses, stops and resumes",
    "cancel": "a person cancels tasks and plans",
    "retry": "a person retries tasks and verifications",
    "edit": "the source is edited and submitted again",
    "answer": "a person answers questions: at any time, twice, or nonsense",
    "open": "a person opens accounts, whether they are in order or not",
    "raise": "a person sets other cost limits",
    "foreign_commit": "someone commits to the plan branch, or to the base",
    "take_back": "a person rejects landed work and rolls it back",
    "take_over": "a person takes tasks over and hands them back: done well, done badly, or not done",
    "discovery": "agents find work outside the plan, and a person accepts it or not",
    "rounds": "a loop over one prompt, with rounds that are good, bad, or change nothing",
    "look": "the last task of each plan is a look at the whole, which finds something, or nothing",
    "documents": "agents say that business documents have to follow what they changed",
    "heal": "plans try other ways for a task that failed for good",
    "contradiction": "agents change tests so that their work passes, which contradicts the old ones",
}
"""Everything that may go wrong. A run has some of them: faults hide each other when all happen at once."""


APART: Final = ("take_back", "take_over")
"""Drawn by themselves, so that a seed gives the run that it gave before they were thought of, but for them."""
AREAS: Final[Mapping[str, float]] = {
    "discovery": 0.25,
    "rounds": 0.12,
    "look": 0.12,
    "documents": 0.12,
    "contradiction": 0.2,
    "heal": 0.25,
}
"""Drawn in the same way, each with its share of all seeds: what only some plans have to do with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One simulated run, before it is played."""

    seed: int
    tasks: int
    loops: int
    workers: int
    hosts: int
    slots: int
    exclusive: bool
    """One worker that holds a lock, as on SQLite; else workers that hold leases."""
    faults: frozenset[str]
    often: Mapping[str, float] = field(default_factory=dict)
    """How likely each fault is when it could happen."""
    most: int | None = None
    """How many faults happen at most: what shrinking turns down."""

    @property
    def replay(self) -> str:
        """The command that plays exactly this again."""
        whole = draw(self.seed)
        words = [f"python -m tests.simulation --seed {self.seed}"]
        if self.tasks != whole.tasks:
            words.append(f"--tasks {self.tasks}")
        if self.workers != whole.workers:
            words.append(f"--workers {self.workers}")
        if without := sorted(whole.faults - self.faults):
            words.append(f"--without {','.join(without)}")
        if self.most is not None:
            words.append(f"--most {self.most}")
        return " ".join(words)


def draw(seed: int) -> Scenario:
    """Return the scenario of a seed."""
    chance = random.Random(f"{seed}/scenario")
    exclusive = chance.random() < 0.35
    workers = 1 if exclusive else chance.choice((1, 2, 2, 3, 4))
    # Most plans are small, so that there are many runs; some are as large as real ones.
    tasks = chance.choice((1, 2, 3, 4, 5, 6, 8, 10, round(chance.triangular(12, 60, 12))))
    share = chance.choice((0.15, 0.3, 0.5))
    shares = {**dict.fromkeys(APART, share), **AREAS}
    faults = frozenset(name for name in FAULTS if name not in shares and chance.random() < share)
    faults |= {name for name, likely in shares.items() if random.Random(f"{seed}/{name}").random() < likely}
    return Scenario(
        seed=seed,
        tasks=tasks,
        loops=1 if tasks < 4 else chance.choice((1, 1, 2)),
        workers=workers,
        hosts=min(workers, chance.choice((1, 2, 3, 4))),
        slots=chance.choice((1, 2, 2, 3)),
        exclusive=exclusive,
        faults=faults,
        often={name: chance.choice((0.3, 1.0, 2.5)) for name in FAULTS},
    )


def without(scenario: Scenario, *names: str) -> Scenario:
    """Return the scenario with some faults taken away."""
    return replace(scenario, faults=scenario.faults - set(names))
