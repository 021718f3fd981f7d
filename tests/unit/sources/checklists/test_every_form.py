"""What holds for every form that keeps its tasks in Markdown."""

from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.cases import each_case
from tests.unit.sources.checklists.forms import FORMS, Form
from tests.unit.sources.laws import after, told, work_or_refusal

from loopwright.adapters import registry
from loopwright.adapters.sources.text.reading import read, recognise
from loopwright.core.values.errors import BadPlan
from loopwright.ports import ItemProgress, Mark

quick = settings(max_examples=40, deadline=None, phases=(Phase.explicit, Phase.generate))
OPEN = (Mark.OPEN, Mark.RUNNING)


def laid(folder: Path, form: Form) -> Path:
    path = folder / form.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(form.text)
    return path


@each_case("form", FORMS, ids=[form.name for form in FORMS])
def test_a_file_is_known_by_its_place_or_structure_and_read_as_a_person_reads_it(
    form: Form, tmp_path: Path
) -> None:
    path = laid(tmp_path, form)
    source = recognise(path, registry.sources())
    assert source.kind == form.kind
    work = read(source, path)
    assert tuple(task.key for task in work.tasks if task.mark in OPEN) == form.open
    assert tuple(task.key for task in work.tasks if task.mark is Mark.DONE) == form.done


@each_case("form", FORMS, ids=[form.name for form in FORMS])
def test_only_status_changes_in_the_file_and_it_can_be_taken_back(form: Form) -> None:
    source = registry.source(form.kind)
    given_files = {form.name: form.text.encode()}
    before = source.parse(given_files, form.path)
    done = after(source, given_files, told({key: ItemProgress(mark=Mark.DONE) for key in form.open}))
    work = source.parse(done, form.path)
    assert {task.key for task in work.tasks if task.mark is Mark.DONE} == {*form.open, *form.done}
    assert work.sha256 == before.sha256, "status is no part of what is asked for"
    changed = [
        (old, new)
        for old, new in zip(form.text.splitlines(), done[form.name].decode().splitlines(), strict=True)
        if old != new
    ]
    assert changed
    signs = str.maketrans("", "", " xX-✅")
    status = {
        "To Do": "",
        "Done": "",
        'status="done"': "",
        "[ ]": "",
        "[x]": "",
        "[X]": "",
        "[-]": "",
        "[~]": "",
    }
    for old, new in changed:
        for word, nothing in status.items():
            old, new = old.replace(word, nothing), new.replace(word, nothing)
        assert old.translate(signs) == new.translate(signs)
    again = after(source, done, told({key: ItemProgress(mark=Mark.OPEN) for key in form.open}))
    assert tuple(task.key for task in source.parse(again, form.path).tasks if task.mark in OPEN) == form.open


@each_case("form", FORMS, ids=[form.name for form in FORMS])
def test_what_is_not_utf_8_is_refused_with_its_line(form: Form) -> None:
    source = registry.source(form.kind)
    broken = {form.name: form.text.encode() + b"\n\xff\n"}
    wanted = f":{form.text.count(chr(10)) + 2}: this is not UTF-8"
    with pytest.raises(BadPlan, match=wanted):
        source.parse(broken, form.path)
    with pytest.raises(BadPlan, match=wanted):
        source.written(broken, told({"a": ItemProgress(mark=Mark.DONE)}))


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
@quick
@given(data=st.data())
def test_writing_loses_nothing_whatever_a_person_does_at_the_same_time(
    form: Form, data: st.DataObject
) -> None:
    source = registry.source(form.kind)
    newline = data.draw(st.sampled_from(["\n", "\r\n"]))
    mark = data.draw(st.sampled_from(["", "\ufeff"]))
    items = {
        key: ItemProgress(mark=one, reason="why")
        for key in data.draw(st.sets(st.sampled_from(form.open + form.done)))
        for one in [data.draw(st.sampled_from(list(Mark)))]
    }
    lines = form.text.splitlines()
    first = after(source, {form.name: (mark + newline.join(lines)).encode()}, told(items))
    for key, item in items.items():
        found = next(task for task in source.parse(first, form.path).tasks if task.key == key)
        assert (found.mark is Mark.DONE) is (item.mark is Mark.DONE) or (
            form.kind == "todo_md" and key in form.done
        )
    edited = form.text + form.added if data.draw(st.booleans()) else form.text
    cut = data.draw(st.integers(0, len(edited)))
    ticked, unticked = edited.replace("[ ]", "[x]"), edited.replace("[x]", "[ ]")
    edited = data.draw(st.sampled_from([edited, edited[:cut], ticked, unticked]))
    files = {form.name: (mark + edited.replace("\n", newline)).encode()}
    work = work_or_refusal(source, files)
    if work is None:
        return
    made = after(source, files, told(items))
    assert len(made[form.name].splitlines()) == len(files[form.name].splitlines())
    assert [task.key for task in source.parse(made, form.path).tasks] == [task.key for task in work.tasks]
    assert made[form.name].startswith(mark.encode())


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
@quick
@given(noise=st.binary(max_size=200), at=st.integers(0, 2_000))
def test_any_bytes_are_read_or_refused(form: Form, noise: bytes, at: int) -> None:
    source = registry.source(form.kind)
    text = form.text.encode()
    files = {form.name: text[:at] + noise + text[at:]}
    if work_or_refusal(source, files) is not None:
        after(source, files, told(dict.fromkeys(form.open, ItemProgress(mark=Mark.DONE))))
