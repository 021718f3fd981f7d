"""Play many seeds, one seed again, or show that planted bugs are found: see `python -m tests.simulation --help`."""

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from tests.simulation.bugs import BUGS
from tests.simulation.crowd import CHUNK, chunks, first_to_find, play_some, pool_of, still_found
from tests.simulation.promises.invariants import Violation
from tests.simulation.scenario import FAULTS, Scenario, draw
from tests.simulation.shrink import find, report, shrink
from tests.simulation.universe import play

from loopwright.core.rows.model import Plan

RECORDED = Path(__file__).with_name("bug_seeds.json")
"""For each planted bug the seed that found it, and the promise that it broke there."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what was asked; return 1 when a promise was broken, or a bug not found."""
    asked = _parser().parse_args(arguments)
    if asked.bugs is not None:
        return _hunt(asked.bugs or list(BUGS), asked)
    if asked.seed is not None:
        return _once(asked)
    return _many(range(asked.first, asked.first + asked.seeds), asked.jobs)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many seeds to play (300)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (one per processor)")
    parser.add_argument("--seed", type=int, help="play this seed and print its history")
    parser.add_argument("--tasks", type=int, help="with --seed: only so many tasks")
    parser.add_argument("--workers", type=int, help="with --seed: only so many workers")
    parser.add_argument("--without", default="", help="with --seed: without these faults, by commas")
    parser.add_argument("--most", type=int, help="with --seed: at most so many faults")
    parser.add_argument("--bug", help="with --seed: with this planted bug")
    parser.add_argument("--bugs", nargs="*", metavar="BUG", help="find planted bugs, these or all")
    parser.add_argument(
        "--anew", action="store_true", help="with --bugs: not the recorded seed first, but all in order"
    )
    parser.add_argument("--record", action="store_true", help="with --bugs: keep the seeds that found them")
    return parser


def _scenario(asked: argparse.Namespace) -> Scenario:
    scenario = draw(asked.seed)
    gone = {name for name in asked.without.split(",") if name}
    if unknown := gone - FAULTS.keys():
        raise SystemExit(f"unknown faults: {', '.join(sorted(unknown))}; known: {', '.join(FAULTS)}")
    scenario = replace(scenario, faults=scenario.faults - gone, most=asked.most)
    if asked.tasks:
        scenario = replace(scenario, tasks=asked.tasks, loops=min(asked.tasks, scenario.loops))
    if asked.workers:
        scenario = replace(scenario, workers=asked.workers, hosts=min(asked.workers, scenario.hosts))
    return scenario


def _once(asked: argparse.Namespace) -> int:
    scenario = _scenario(asked)
    print(f"{scenario.tasks} tasks, {scenario.workers} workers with {scenario.slots} slots each")
    print("faults: " + ", ".join(sorted(scenario.faults)))
    with BUGS[asked.bug].planted() if asked.bug else nullcontext():
        try:
            universe = play(scenario)
        except Violation as broken:
            print("\n".join(broken.history))
            print(f"BROKEN  {broken}")
            return 1
    print("\n".join(universe.history.lines))
    for plan in universe.database.all(Plan).values():
        print(f"{plan.id} is {plan.status.value} after {universe.loop.time():.0f} simulated seconds")
    return 0


# --- many seeds ------------------------------------------------------------------------------------------


def _many(seeds: range, jobs: int) -> int:
    began, struck, simulated = time.monotonic(), Counter[str](), 0.0
    broken: list[tuple[int, str]] = []
    with pool_of(jobs) as pool:
        for done, (found, hits, seconds) in enumerate(pool.imap(play_some, chunks(seeds)), start=1):
            broken += found
            for seed, what in found:
                print(f"seed {seed}: {what}", flush=True)
            struck += hits
            simulated += seconds
            if sys.stderr.isatty():
                print(f"\r{min(done * CHUNK, len(seeds))}/{len(seeds)} seeds", end="", file=sys.stderr)
    took = time.monotonic() - began
    days, faults = simulated / 86_400, struck.total()
    print(
        f"{len(seeds)} seeds in {took:.0f} s: {days:.1f} simulated days, {faults} faults, {len(broken)} broken"
    )
    print("  " + ", ".join(f"{name} {count}" for name, count in struck.most_common()))
    for seed, _ in broken[:3]:
        whole = find(draw(seed))
        assert whole is not None, f"seed {seed} is not deterministic"
        print(report(whole, shrink(whole)))
    return 1 if broken else 0


# --- planted bugs ----------------------------------------------------------------------------------------


def _hunt(names: Sequence[str], asked: argparse.Namespace) -> int:
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    seeds = range(asked.first, asked.first + asked.seeds)
    known = {} if asked.anew else {name: recorded[name]["seed"] for name in names if name in recorded}
    missed = []
    with pool_of(asked.jobs) as pool:
        again = still_found(pool, known, seeds)
        for name in names:
            found = again.get(name) or first_to_find(pool, name, seeds, asked.jobs)
            if found is None:
                missed.append(name)
                print(f"NOT FOUND  {name}: {BUGS[name].what}", flush=True)
            else:
                seed, promise = found
                recorded[name] = {"seed": seed, "promise": promise}
                print(f"found  {name:32} seed {seed:5}  {promise}", flush=True)
    if asked.record:
        RECORDED.write_text(json.dumps(dict(sorted(recorded.items())), indent=1) + "\n")
    print(f"{len(names) - len(missed)} of {len(names)} planted bugs found within {asked.seeds} seeds")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
