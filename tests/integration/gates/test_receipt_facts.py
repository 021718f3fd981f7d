"""Receipts of real landings in a real repository, verified by looking again."""

import json
import subprocess
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from tests.integration.gates.desks import command, ended
from tests.unit.core.receipts.as_json import build_receipt, fingerprint, render, verify_receipt

from loopwright.adapters.gates.commands import CommandGate
from loopwright.adapters.gates.records import evidence_file
from loopwright.adapters.git.repository import GitRepository
from loopwright.adapters.home.receipts import gather_facts
from loopwright.adapters.processes.keeper_files import evidence_hash, listing
from loopwright.core.gates.verdicts import gate_key
from loopwright.core.receipts.build import GitFacts, landing_part
from loopwright.core.receipts.landing_hashes import landing_hash
from loopwright.core.receipts.model import read_receipt
from loopwright.core.rows.model import Attempt, Plan, Project, Task, VerdictRecord
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState, PlanState, TaskState
from loopwright.ports import GateRequest, Trailers

NOW = datetime(2026, 1, 2, tzinfo=UTC)
PLAN_ID = f"plan_{UUID(int=1)}"
BRANCH = f"loopwright/{PLAN_ID}/main"
ALL = (command("cat *.txt", "all"),)


def task_id(n):
    return f"ptask_{UUID(int=n)}"


@dataclass
class World:
    """A repository in which a plan of two tasks landed, and a home."""

    project: Path
    home: Path
    repository: GitRepository

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
            cwd=self.project,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    @property
    def runs(self) -> Path:
        return self.home / "runs"

    async def land(self, n: int, *, task: int | None = None) -> Attempt:
        """Let an attempt write one file, and land it."""
        tip = await self.repository.tip(BRANCH)
        path = self.home / "workspaces" / f"w{n}"
        await self.repository.make_workspace(path, tip)
        (path / f"{n}.txt").write_text(f"{n}\n")
        whose = task_id(task or n)
        trailers = Trailers(plan=PLAN_ID, task=whose, attempt=f"att_{UUID(int=n)}", run=f"run_{UUID(int=n)}")
        snapshot = await self.repository.snapshot(
            path,
            base_sha=tip,
            ref=f"refs/loopwright/attempts/{n}",
            subject=f"Task {n}",
            trailers=trailers,
            at=NOW,
        )
        attempt = Attempt(
            id=trailers.attempt,
            plan_id=PLAN_ID,
            task_id=whose,
            n=1,
            state=AttemptState.LANDED,
            agent="scripted",
            tip_sha=snapshot.sha,
            created_at=NOW,
            updated_at=NOW,
        )
        part = landing_part(self.plan(), self.task(task or n, attempt), attempt, [], {})
        candidate = await self.repository.candidate(
            tip=tip,
            attempt_sha=snapshot.sha,
            subject=f"Task {n}",
            trailers=replace(trailers, receipt=landing_hash(part)),
            at=NOW,
        )
        assert await self.repository.advance(BRANCH, new=candidate.sha, old=tip)
        return replace(
            attempt,
            candidate_sha=candidate.sha,
            candidate_tree=candidate.tree,
            candidate_parent=candidate.parent,
        )

    def plan(self, commands=ALL, tip: str | None = None) -> Plan:
        return Plan(
            id=PLAN_ID,
            project_id="proj",
            loop_id="loop",
            title="A plan",
            status=PlanState.VERIFIED,
            source_sha256="0" * 64,
            base_ref="main",
            base_sha=self.git("rev-parse", "HEAD"),
            branch=BRANCH,
            policy=Policy(),
            gates=commands,
            result_sha=tip,
            created_at=NOW,
            updated_at=NOW,
        )

    def task(self, n: int, attempt: Attempt) -> Task:
        return Task(
            id=attempt.task_id,
            plan_id=PLAN_ID,
            key=f"t{n}",
            title="t",
            position=n,
            status=TaskState.COMPLETE,
            attempt_id=attempt.id,
            landed_sha=attempt.candidate_sha,
            created_at=NOW,
            updated_at=NOW,
        )

    async def judge(self, attempt: Attempt, commands=ALL, *, gate=None) -> VerdictRecord:
        """Run the real gate on a candidate's tree."""
        gate = gate or CommandGate()
        run_id = f"run_{uuid4()}"
        tree = self.home / "workspaces" / f"gate-{attempt.n}-{run_id}"
        await self.repository.checkout(tree, attempt.candidate_sha)
        request = GateRequest(
            run_id=run_id,
            directory=self.runs / run_id,
            tree=tree,
            commands=commands,
            env={"PATH": "/usr/bin:/bin"},
        )
        spec = gate.spec(request)
        done = subprocess.run(spec.argv, cwd=spec.cwd, env=dict(spec.env), stdout=subprocess.DEVNULL)
        return VerdictRecord(
            id=f"verdict_{uuid4()}",
            plan_id=PLAN_ID,
            tree=attempt.candidate_tree,
            gate_key=gate_key(commands),
            run_id=run_id,
            verdict=gate.verdict(request, ended(done.returncode)),
            created_at=NOW,
        )

    async def receipt(self, attempts, verdicts, commands=ALL, more=()):
        base, tip = self.git("rev-parse", "HEAD"), await self.repository.tip(BRANCH)
        pairs = [(base, tip), *((a.candidate_parent, a.candidate_sha) for a in attempts)]
        whole, *each = await self.repository.diff_hashes(pairs)
        hashes = dict(zip((a.task_id for a in attempts), each, strict=True))
        return build_receipt(
            project=Project(id="proj", name="demo", path=str(self.project), created_at=NOW),
            plan=self.plan(commands, tip),
            tasks=[self.task(n, attempt) for n, attempt in enumerate(attempts, 1)],
            attempts=[*attempts, *more],
            runs=[],
            verdicts=verdicts,
            git=GitFacts(
                result_tree=await self.repository.tree_of(tip),
                diff_sha256=whole,
                task_diff_sha256=hashes,
            ),
            event_head=None,
            made_by="loopwright test",
        )

    async def differences(self, receipt, *, runs: Path | None = None):
        facts = await gather_facts(self.repository, read_receipt(receipt), runs)
        return verify_receipt(receipt, facts), facts.unchecked


@pytest.fixture
async def world(tmp_path: Path) -> World:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir()
    made = World(
        project=project, home=home, repository=GitRepository(project, project_id=f"proj_{uuid4()}", home=home)
    )
    made.git("init", "-q", "-b", "main")
    (project / "0.txt").write_text("0\n")
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "start")
    await made.repository.ensure_branch(BRANCH, made.git("rev-parse", "HEAD"))
    return made


@pytest.mark.capability("C078")
async def test_the_receipt_of_real_landings_verifies_and_names_what_it_could_not_see(world, wording):
    attempts = [await world.land(1), await world.land(2)]
    verdicts = [await world.judge(attempt) for attempt in attempts]
    receipt = await world.receipt(attempts, verdicts)
    assert receipt["outcome"] == "verified"
    receipt = json.loads(render(receipt))
    differences, unchecked = await world.differences(receipt, runs=world.runs)
    assert differences == []
    wording(unchecked)
    differences, unchecked = await world.differences(receipt)
    assert differences == []
    wording(unchecked[1])


async def test_a_second_landing_of_one_task_is_found(world):
    attempts = [await world.land(1), await world.land(2), await world.land(3, task=1)]
    verdict = replace(await world.judge(attempts[1]), tree=attempts[2].candidate_tree)
    differences, _ = await world.differences(await world.receipt(attempts[:2], [verdict]))
    assert "landings t1" in differences


async def test_a_landing_names_what_the_receipt_says_of_its_work(world):
    attempt = await world.land(1)
    receipt = await world.receipt([attempt], [await world.judge(attempt)])
    receipt["tasks"][0]["title"] = "another"
    receipt["sha256"] = fingerprint(receipt)
    differences, _ = await world.differences(receipt)
    assert differences == [f"landing_hash {attempt.candidate_sha}"]


async def test_a_receipt_of_commits_that_are_not_here_says_so(world):
    attempt = await world.land(1)
    receipt = await world.receipt([attempt], [await world.judge(attempt)])
    for gone in ("result", "landed"):
        forged = json.loads(render(receipt))
        if gone == "result":
            forged["plan"]["result_sha"] = "d" * 40
        else:
            forged["tasks"][0]["landed_sha"] = "d" * 40
        forged["sha256"] = fingerprint(forged)
        differences, _ = await world.differences(forged)
        assert f"commit_missing {'d' * 40}" in differences


async def test_a_root_commit_is_no_landing(world):
    attempt = await world.land(1)
    receipt = await world.receipt([attempt], [await world.judge(attempt)])
    receipt["tasks"][0]["landed_sha"] = receipt["plan"]["base_sha"]
    differences, _ = await world.differences(receipt)
    assert "landed_parent t1" in differences


async def test_a_changed_output_is_found_and_a_lost_one_is_named(world, wording):
    attempt = await world.land(1)
    verdict = await world.judge(attempt)
    receipt = await world.receipt([attempt], [verdict])
    kept = evidence_file(world.runs / verdict.run_id, "1")
    kept.write_text("something else")
    differences, _ = await world.differences(receipt, runs=world.runs)
    assert differences == [f"recorded_file {verdict.run_id}/1"]
    kept.unlink()
    differences, unchecked = await world.differences(receipt, runs=world.runs)
    assert differences == []
    wording(unchecked[1])


async def test_an_output_of_which_only_parts_were_kept_is_not_called_wrong(world, wording):
    attempt = await world.land(1)
    noisy = (command("seq 900000", "noisy"),)
    verdict = await world.judge(attempt, noisy)
    receipt = await world.receipt([attempt], [verdict], noisy)
    assert receipt["outcome"] == "verified"
    differences, unchecked = await world.differences(receipt, runs=world.runs)
    assert differences == []
    wording(unchecked[1])
    kept = evidence_file(world.runs / verdict.run_id, "1.kept")
    kept.write_bytes(kept.read_bytes().replace(b"\n77\n", b"\n78\n"))
    differences, _ = await world.differences(receipt, runs=world.runs)
    assert differences == [f"recorded_file {verdict.run_id}/1.kept"]


REPORT = '<testsuite name="s"><testcase name="a" classname="c"/></testsuite>'
WATCHED = f"""cat > test_it.py <<'END'
import unittest

class T(unittest.TestCase):
    def test_it(self):
        pass
END
python3 -B -m unittest -q test_it && echo '{REPORT}' > report.xml"""


@pytest.mark.parametrize("suffix", ["seen", "xml"])
async def test_a_change_of_what_was_seen_or_reported_is_found(world, suffix):
    attempt = await world.land(1)
    watched = (replace(command(WATCHED, "watched"), junit="report.xml"),)
    verdict = await world.judge(attempt, watched)
    receipt = await world.receipt([attempt], [verdict], watched)
    file = evidence_file(world.runs / verdict.run_id, f"1.{suffix}")
    file.write_bytes(file.read_bytes().replace(b"test", b"tast", 1))
    differences, _ = await world.differences(receipt, runs=world.runs)
    assert differences == [f"recorded_file {verdict.run_id}/1.{suffix}"]
    file.unlink()
    differences, unchecked = await world.differences(receipt, runs=world.runs)
    assert differences == []
    assert any(line.endswith("its file is gone") for line in unchecked)


async def test_a_mark_of_something_left_out_excuses_no_small_output(world):
    attempt = await world.land(1)
    verdict = await world.judge(attempt)
    receipt = await world.receipt([attempt], [verdict])
    evidence_file(world.runs / verdict.run_id, "1").write_text("[... 5 bytes left out ...]\n")
    differences, _ = await world.differences(receipt, runs=world.runs)
    assert differences == [f"recorded_file {verdict.run_id}/1"]


async def test_the_work_of_an_attempt_that_is_gone_is_named(world):
    attempt = await world.land(1)
    lost = replace(
        attempt,
        id=f"att_{UUID(int=9)}",
        n=0,
        state=AttemptState.REJECTED,
        tip_sha="ab" * 20,
        candidate_sha=None,
        candidate_tree=None,
    )
    verdict = await world.judge(attempt)
    whole = await world.receipt([attempt], [verdict])
    facts = await gather_facts(world.repository, read_receipt(whole), world.runs)
    assert not any("the work of attempt" in words for words in facts.unchecked)
    entry = await world.receipt([attempt], [verdict], more=[lost])
    facts = await gather_facts(world.repository, read_receipt(entry), world.runs)
    assert verify_receipt(entry, facts) == [], "no result rests on it"
    said = f"the work of attempt 0 at task 't1': commit {lost.tip_sha} is not in this repository"
    assert any(words.startswith(said) for words in facts.unchecked), facts.unchecked


def test_the_hash_of_what_is_written_down_covers_commands_that_were_run_again(tmp_path: Path) -> None:
    run = tmp_path / "run"
    kept = ("spec.json", "exit.json", "checkout.json", "gate/job.json", "again-alone/gate/results.json")
    live = ("status.json", "lock", "prompt.md", "output/00000000000000000000", "again-alone/status.json")
    assert evidence_hash(run) == "", "nothing is known of what was never started"
    for name in (*kept, *live):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(name)
    whole = evidence_hash(run)
    assert [line.split("  ")[1] for line in listing(run).decode().splitlines()] == sorted(kept)
    for name in live:
        (run / name).write_text("changed")
    assert evidence_hash(run) == whole
    for name in kept:
        (run / name).write_text("changed")
        assert evidence_hash(run) != whole
        (run / name).write_text(name)
    (run / "gate" / "9.out").write_text("put there later")
    assert evidence_hash(run) != whole
