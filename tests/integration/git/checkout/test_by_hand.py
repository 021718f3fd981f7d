"""A checkout for a person: what it starts from, what is taken in from it, and that it stays as it is."""

from tests.integration.git.branches.test_taking_out import land, without
from tests.integration.git.world import AT, BRANCH, PLAN, TASK, World, sh, trailers
from tests.refusals import raises_code

from loopwright.adapters.git.checkout.handover import Hands

MINE = f"loopwright/{PLAN}/{TASK}"
REF = f"refs/loopwright/attempts/{PLAN}/{TASK}/2"


async def test_what_was_landed_and_taken_back_can_be_handed_out_and_lands_again(world: World) -> None:
    landed = await land(world, 1, "echo two > app.py")
    work = world.sh("git", "rev-parse", f"{landed}^2")
    back = await without(world, landed)
    await world.repository.advance(BRANCH, new=back.sha, old=landed)
    by_hand = await world.repository.by_hand()
    start = await by_hand.start(work, base=world.base_sha, tip=back.sha, subject="feat: it", at=AT)
    assert start != work
    place = world.home.parent / "mine"
    await by_hand.hand_out(place, MINE, start)
    assert (place / "app.py").read_text() == "two\n"
    (place / "app.py").write_text("two\nthree\n")
    (place / "new file").write_text("new\n")
    hands = await by_hand.look(place, MINE)
    assert (hands.head, set(hands.uncommitted)) == (start, {"app.py", "new file"})
    sha = await by_hand.take_in(place, hands, ref=REF, subject="feat: by hand", at=AT)
    assert world.sh("git", "rev-parse", REF) == sha
    assert sh(place, "git", "status", "--porcelain").splitlines() == ["M app.py", '?? "new file"']
    assert await by_hand.base_of(sha, back.sha) == world.base_sha
    made = await world.repository.candidate(
        tip=back.sha, attempt_sha=sha, subject="feat: by hand", trailers=trailers(), at=AT
    )
    assert world.sh("git", "show", f"{made.sha}:app.py") == "two\nthree"
    assert world.sh("git", "show", f"{made.sha}:new file") == "new"
    (place / "app.py").write_text("two\nfour\n")
    again = await by_hand.look(place, MINE)
    newer = await by_hand.take_in(place, again, ref=REF, subject="feat: by hand", at=AT)
    assert world.sh("git", "rev-parse", REF) == newer != sha
    assert world.sh("git", "rev-parse", f"{REF}-was-{sha[:12]}") == sha, "it may be what is being checked"


async def test_the_last_work_is_handed_out_as_it_is_or_else_the_branch(world: World) -> None:
    by_hand = await world.repository.by_hand()
    await world.make()
    world.agent("echo half > app.py")
    work = (await world.snapshot(1)).sha
    told = {"base": world.base_sha, "tip": world.base_sha, "subject": "feat: it", "at": AT}
    assert await by_hand.start(work, **told) == work
    assert await by_hand.start(None, **told) == world.base_sha


async def test_a_checkout_is_found_again_and_its_branch_outlives_it(world: World) -> None:
    by_hand = await world.repository.by_hand()
    place = world.home.parent / "mine"
    with raises_code("checkout_gone"):
        await by_hand.look(place, MINE)
    await by_hand.hand_out(place, MINE, world.base_sha)
    await by_hand.hand_out(place, MINE, world.base_sha)
    sh(place, "git", "commit", "-q", "--allow-empty", "-m", "mine")
    head = sh(place, "git", "rev-parse", "HEAD")
    world.sh("git", "worktree", "remove", str(place))
    assert await by_hand.look(place, MINE) == Hands(head=head)
    await by_hand.hand_out(place, MINE, world.base_sha)
    assert sh(place, "git", "rev-parse", "HEAD") == head
    (world.home.parent / "full").mkdir()
    (world.home.parent / "full" / "file").touch()
    with raises_code("folder_not_empty"):
        await by_hand.hand_out(world.home.parent / "full", MINE, world.base_sha)
