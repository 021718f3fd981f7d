"""The ways of working that are compared: two baselines, and Loopwright with each mechanism on and off."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bench.worth.agents import Nature, nature
from bench.worth.assumptions import Values
from bench.worth.loop import Mechanisms, Project
from bench.worth.plain import Ended, plain, ralph, ralph_until_green
from loopwright.core.values.healing import HealStep
from loopwright.core.values.policy import HealPolicy, Policy, ReviewPolicy

STRONG: Final = "claude:strong"
PER_PROJECT: Final = 400
"""So many tasks a project has: what it learned ends with it."""
DEFAULTS: Final = Mechanisms(policy=Policy())
_REVIEW: Final = ReviewPolicy(mode="always")
_HEAL: Final = HealPolicy(stronger=STRONG, investigator="claude")
EVERYTHING: Final = Mechanisms(
    policy=Policy(auto_heal=True, fallback=("other",), heal=_HEAL, review=_REVIEW),
    held_out=True,
    lessons=True,
)


def _without(one: Mechanisms, name: str) -> Mechanisms:
    """Return what is left without a mechanism."""
    policy = one.policy
    match name:
        case "retries":
            return replace(one, policy=replace(policy, max_attempts=1))
        case "evidence":
            return replace(one, evidence=False)
        case "clean base":
            return replace(one, clean=False)
        case "gates":
            return replace(one, gates=False)
        case "held-out checks":
            return replace(one, held_out=False)
        case "reviewer":
            return replace(one, policy=replace(policy, review=ReviewPolicy()))
        case "lessons":
            return replace(one, lessons=False)
        case "fallback":
            return replace(one, policy=replace(policy, fallback=()))
        case "healing":
            return replace(one, policy=replace(policy, auto_heal=False))
        case _:
            return replace(one, steps=one.steps - {HealStep(name)})


def _only(step: HealStep) -> Mechanisms:
    """Return the defaults with one healing step, and with the agents that it needs."""
    others = ("other",) if step is HealStep.OTHER_AGENT else ()
    policy = Policy(auto_heal=True, fallback=others, heal=HealPolicy(stronger=STRONG))
    return Mechanisms(policy=policy, steps=frozenset({step}))


STEPS: Final = tuple(one for one in HealStep if one is not HealStep.BYPASS)
"""A bypass is chosen by another rule: no single task needs it."""
BASELINES: Final[Mapping[str, Callable[[Nature, Values], Ended]]] = {
    "one plain agent": plain,
    "Ralph loop, until its agent says done": ralph,
    "Ralph loop, until the checks pass": ralph_until_green,
}
WAYS: Final[Mapping[str, Mechanisms]] = {
    "Loopwright, defaults": DEFAULTS,
    "defaults without retries": _without(DEFAULTS, "retries"),
    "defaults without evidence": _without(DEFAULTS, "evidence"),
    "defaults, retries in a dirty workspace": _without(DEFAULTS, "clean base"),
    "defaults without gates": _without(DEFAULTS, "gates"),
    "defaults + held-out checks": replace(DEFAULTS, held_out=True),
    "defaults + reviewer": Mechanisms(policy=Policy(review=_REVIEW)),
    "defaults + fallback": Mechanisms(policy=Policy(fallback=("other",))),
    "defaults + lessons": replace(DEFAULTS, lessons=True),
    "defaults + healing": Mechanisms(policy=Policy(auto_heal=True)),
    "defaults + healing with all agents": Mechanisms(
        policy=Policy(auto_heal=True, fallback=("other",), heal=_HEAL)
    ),
    # An investigator alone changes no attempt: it chooses among the other steps.
    **{
        f"defaults + healing, only {one.value}": _only(one)
        for one in STEPS
        if one is not HealStep.INVESTIGATE
    },
    "everything": EVERYTHING,
    **{
        f"everything without {name}": _without(EVERYTHING, name)
        for name in ("evidence", "gates", "held-out checks", "reviewer", "fallback", "lessons", "healing")
    },
    **{f"everything without {one.value}": _without(EVERYTHING, one.value) for one in STEPS},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a way of working came to."""

    tasks: int
    done: int
    right: int
    dollars: float
    minutes: float

    @property
    def right_share(self) -> float:
        """The share of all tasks that is done and right."""
        return self.right / self.tasks

    @property
    def false_done(self) -> float:
        """The share of the tasks called done that is not."""
        return (self.done - self.right) / self.done if self.done else 0.0

    @property
    def per_dollar(self) -> float:
        """Right tasks per dollar."""
        return self.right / self.dollars

    @property
    def per_hour(self) -> float:
        """Right tasks per hour of one agent at a time."""
        return 60 * self.right / self.minutes


def played(way: str, a: Values, *, tasks: int, seed: int = 1) -> Result:
    """Let the same tasks be done in one way."""
    ended = list(_ended(way, [nature(seed, n, a) for n in range(tasks)], a))
    return Result(
        tasks=tasks,
        done=sum(one.is_done for one in ended),
        right=sum(one.is_done and one.is_right for one in ended),
        dollars=sum(one.dollars for one in ended),
        minutes=sum(one.minutes for one in ended),
    )


def _ended(way: str, tasks: Sequence[Nature], a: Values) -> Iterator[Ended]:
    if (baseline := BASELINES.get(way)) is not None:
        yield from (baseline(one, a) for one in tasks)
        return
    for first in range(0, len(tasks), PER_PROJECT):
        project = Project(a, WAYS[way])
        yield from (project.run(one) for one in tasks[first : first + PER_PROJECT])
