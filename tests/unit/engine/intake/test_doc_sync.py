"""The step that brings business documents up to date: when it is due, and when a person says that it is not."""

from loopwright.core.replies.doc_sync import DocSync
from loopwright.core.rows.model import Attempt, CommandState, Plan
from loopwright.core.values.states import AttemptState, PlanState, TaskState
from loopwright.engine.intake.doc_sync import left_behind, note
from loopwright.engine.intake.progress import progress_of
from loopwright.ports import Mark, PlannedWork

from tests.doubles import Home, planned  # isort: skip

FLAG = DocSync(reason="Prices", documents=("docs/prices.md",))


async def landed() -> Home:
    home = await Home().launch()
    work = PlannedWork(title="A plan", tasks=(planned("a"),), sha256="a" * 64, doc_sync=FLAG)
    home.submit(work=work)
    [leg] = await home.turn()
    home.hand.land(leg)
    await home.ended(leg)
    return home


async def verified(home: Home) -> None:
    [leg] = await home.turn()
    await home.verify(leg)


async def test_it_is_due_as_long_as_a_named_document_is_as_it_was() -> None:
    home = await landed()
    await verified(home)
    task = home.task("business-sync")
    assert (task.scope, task.status, home.plan().status) == (
        ("docs/prices.md",),
        TaskState.QUEUED,
        PlanState.RUNNING,
    )
    told = home.store.read_sync(lambda tx: progress_of(tx, home.plan()))
    assert told.sync is not None
    assert (told.sync.mark, told.sync.reason, told.completed_at) == (Mark.OPEN, "Prices", None)
    project, plan = home.project(), home.plan()
    assert await left_behind(home.repository, project, plan, task, "s") == ("docs/prices.md",)  # type: ignore[arg-type]
    home.repository.differs = ("docs/prices.md",)
    assert await left_behind(home.repository, project, plan, task, "s") == ()  # type: ignore[arg-type]
    [leg] = await home.turn()
    home.hand.land(leg)
    await home.ended(leg)
    await verified(home)
    assert home.plan().status is PlanState.VERIFIED


async def test_a_person_may_say_that_they_need_not_follow() -> None:
    home = await landed()
    await verified(home)
    await home.command("cancel", home.task("business-sync").id)
    await home.turn()
    assert (await home.command("reverify", home.plan().id)).state is CommandState.APPLIED
    for leg in await home.reconcile():
        await home.verify(leg)
    assert home.plan().status is PlanState.VERIFIED
    told = home.store.read_sync(lambda tx: progress_of(tx, home.plan()))
    assert told.sync is not None
    assert told.sync.mark is Mark.SKIPPED


async def test_what_an_agent_says_counts_once_its_work_has_landed() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    home.hand.until(leg, AttemptState.CHECKING)
    said = '```loopwright-docs\n{"documents": ["docs/a.md"]}\n```\n'

    def flag() -> None:
        attempt = home.get(Attempt, leg.subject)
        home.store.transact_sync("note", lambda tx: note(tx, home.plan(), attempt, said))

    flag()
    flag()
    assert [one.documents for one in home.get(Plan, home.plan().id).doc_sync] == [("docs/a.md",)]
    assert home.told("docs_flagged") == ["docs_flagged"], "said twice it is one flag"
    home.hand.land(leg)
    await home.ended(leg)
    await verified(home)
    assert home.task("business-sync").scope == ("docs/a.md",)


async def test_whoever_brings_documents_up_to_date_names_no_more_of_them() -> None:
    home = await landed()
    await verified(home)
    [leg] = await home.turn()
    home.hand.until(leg, AttemptState.CHECKING)
    said = '```loopwright-docs\n{"documents": ["docs/one-more.md"]}\n```\n'
    attempt = home.get(Attempt, leg.subject)
    home.store.transact_sync("note", lambda tx: note(tx, home.plan(), attempt, said))
    assert home.plan().doc_sync == (FLAG,), "else it never ends"
    home.repository.differs = ("docs/prices.md",)
    home.hand.land(leg)
    await home.ended(leg)
    await verified(home)
    assert home.plan().status is PlanState.VERIFIED
