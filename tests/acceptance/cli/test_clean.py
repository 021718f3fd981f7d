"""`loopwright clean`: what is in a branch of the user's may go, everything else stays until it is named."""

from tests.acceptance.sandbox import Sandbox, task

from loopwright.core.values.ids import short_id


def _ours(sandbox: Sandbox) -> list[str]:
    return sandbox.git(
        "for-each-ref", "--format=%(refname)", "refs/heads/loopwright", "refs/loopwright"
    ).split()


def test_only_merged_work_goes_and_the_rest_only_by_name(sandbox: Sandbox) -> None:
    sandbox.play({"two": [[{"write": "two", "text": "wrong\n"}], [{"write": "two", "text": "right\n"}]]})
    assert sandbox.run(sandbox.plan("p", [task("two", "grep -q right two")])).code == 0
    plan = sandbox.newest_plan()
    before = _ours(sandbox)
    unmerged = sandbox("clean", "--yes")
    assert (unmerged.code, "nothing to delete" in unmerged.out) == (0, True), unmerged.out
    merge = f"merge --ff-only loopwright/{short_id(plan)}/main"
    sandbox.git("pack-refs", "--all")
    assert f"  git {merge} " in sandbox("status").out
    assert (
        f"  git -C {sandbox.repository} {merge} " in sandbox("show", plan, cwd=sandbox.repository.parent).out
    )
    sandbox.git(*merge.split(), "-q")
    shown = sandbox("clean", "--dry-run").out
    assert "  delete  its branch and 1 attempt: in trunk\n" in shown
    assert "  keep    1 attempt: in none of your branches\n" in shown
    assert "refs/" not in shown, "a plan can have hundreds of them"
    unasked = sandbox("clean")
    assert unasked.code == 2
    assert "--yes" in unasked.err
    assert _ours(sandbox) == before
    said = sandbox("clean", "--yes", "--json")
    [found] = said.document["plans"]
    rejected = [one["ref"] for one in found["keep"]]
    assert said.document["deleted"] == len(before) - len(rejected) > 0
    assert _ours(sandbox) == rejected, "the work of the rejected attempt is nowhere else"
    assert "git merge" not in sandbox("status").out + sandbox("show", plan).out, "its branch is gone"
    assert sandbox("clean", "--unproven").code == 2
    assert sandbox("clean", plan, "--unproven", "--yes").code == 0
    assert _ours(sandbox) == []
    assert sandbox("receipt", "verify", plan).code == 0, "its commits are in the user's branch"
    _recordings_go_by_a_flag_of_their_own(sandbox, plan)


def _recordings_go_by_a_flag_of_their_own(sandbox: Sandbox, plan: str) -> None:
    """What agents said may go once nobody can continue the plan; what gates printed stays as evidence."""
    said = sorted(path.parent.name for path in sandbox.home.glob("runs/*/output"))
    gates = sorted(sandbox.home.glob("runs/*/gate/*.out"))
    shown = sandbox("clean", "--recordings", "--dry-run", "--json").document
    (found,) = shown["plans"]
    assert (found["plan"], shown["deleted"]) == (plan, 0)
    assert len(found["runs"]) == 2, "one for each attempt"
    assert set(found["runs"]) <= set(said)
    assert sandbox("clean", "--recordings").code == 2, "nobody is here to ask"
    assert sorted(path.parent.name for path in sandbox.home.glob("runs/*/output")) == said
    done = sandbox("clean", "--recordings", "--yes")
    assert (done.code, "deleted: 2 recordings" in done.out) == (0, True), done.out + done.err
    assert not [run for run in found["runs"] if (sandbox.home / "runs" / run / "output").exists()]
    assert sorted(sandbox.home.glob("runs/*/gate/*.out")) == gates
    verified = sandbox("receipt", "verify", plan)
    assert verified.code == 0, verified.out
    assert "no longer kept" in verified.out
    assert "nothing to delete" in sandbox("clean", "--recordings").out
