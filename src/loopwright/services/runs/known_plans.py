"""`run` on a plan that was here before: what its flags would have to change is said, never ignored in silence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from loopwright.config.groups import ROUND_FLAGS
from loopwright.core.policy.budget import CAPS
from loopwright.core.rows.model import Plan
from loopwright.core.values.errors import Refused
from loopwright.core.values.ids import short_id
from loopwright.core.values.policy import Policy
from loopwright.core.values.shell_hints import to_type
from loopwright.core.values.wording import counted, listed, money

_TYPED: Final[Mapping[str, str]] = {"wait_for_limits": "--no-wait", **ROUND_FLAGS}
"""Flags that are typed under another name than their setting's."""

_HARMLESS: Final = frozenset({"parallel"})
"""Flags that change neither what is spent nor what the result is worth."""


_SETTLED: Final = "every item is done or skipped: what you set open again in the source is done again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """A flag that would change nothing: the plan keeps the value that it began with."""

    flag: str
    kept: str
    harmless: bool


def flag_of(key: str) -> str:
    """Return a flag as it is typed."""
    return _TYPED.get(key, "--" + key.replace("_", "-"))


def idle_flags(
    flags: Mapping[str, Any], wanted: Policy, plan: Plan, *, base_sha: str | None
) -> tuple[Idle, ...]:
    """Return the flags that were given but differ from what an unfinished plan began with."""
    found: list[Idle] = []
    for key, value in flags.items():
        if value is None or not hasattr(plan.policy, key.partition(".")[0]):
            continue  # not given, or nothing that a plan keeps
        field = attrgetter(key)
        kept = field(plan.policy)
        if field(wanted) != kept:
            found.append(Idle(flag=flag_of(key), kept=_words(key, kept), harmless=key in _HARMLESS))
    if base_sha is not None and base_sha != plan.base_sha:
        kept = f"{plan.base_ref} ({plan.base_sha[:7]})"
        found.append(Idle(flag="--base", kept=kept, harmless=False))
    return tuple(found)


def _words(key: str, kept: Any) -> str:
    if key in CAPS:
        return "no limit" if kept is None else money(kept)
    return "none" if kept is None else str(kept).lower() if isinstance(kept, bool) else str(kept)


def refuse_idle(idle: Sequence[Idle], plan: Plan) -> tuple[str, ...]:
    """Refuse to carry a plan on with flags that would mislead about it; return what to say about the others."""
    wrong = [one for one in idle if not one.harmless]
    if wrong:
        kept = ", ".join(f"{one.flag} (it began with {one.kept})" for one in wrong)
        ways = [f"leave {'it' if len(wrong) == 1 else 'them'} out to carry the plan on"]
        limits = [one.flag for one in wrong if one.flag in map(flag_of, CAPS)]
        if limits:
            another = to_type("resume", short_id(plan.id), **{limits[0].removeprefix("--"): "…"})
            ways.append(f"`{another}` sets another limit")
        ways.append(f"`loopwright cancel {short_id(plan.id)}`, then run it with --new")
        raise Refused(
            f"this plan is unfinished and keeps its settings, so {counted(len(wrong), 'flag')} would change "
            f"nothing: {kept}",
            code="flags_without_effect",
            hint="; or ".join(ways),
        )
    return tuple(f"{one.flag} changes nothing now: the plan began with {one.kept}" for one in idle)


def for_finished(
    flags: Mapping[str, Any], *, base: str | None, cancelled: bool = False, left: int | None = None
) -> str:
    """Return how to run a plan that ended once more, with the given flags.

    `left` is how many items the source has open where others are done or skipped: those are not done again.
    """
    given = [flag_of(key) for key, value in {**flags, "base": base}.items() if value is not None]
    was = "was cancelled" if cancelled else "was already run"
    over = "--new starts it over"
    if left is not None:
        over = f"--new starts over with the {counted(left, 'item')} still open" if left else _SETTLED
    if not given:
        return f"This plan {was}; {over}."
    verb = "changes" if len(given) == 1 else "change"
    told = f"This plan {was}, so {listed(given)} {verb} nothing; {over}{'' if left == 0 else ' with that'}."
    if flags.get("finish") and not cancelled:
        told += f" `{to_type('accept', finish=flags['finish'])}` accepts its work."
    return told
