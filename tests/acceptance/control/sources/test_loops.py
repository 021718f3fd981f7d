"""Settings of one loop among several of a project."""

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task

from loopwright.core.rows.model import Plan, Role, Run


@pytest.mark.capability("C007")
def test_a_loop_has_settings_of_its_own_and_the_others_do_not(shop: Workshop) -> None:
    shop.play({key: [[{"write": key, "text": "x\n"}]] for key in ("day", "night")})
    day, night = (shop.plan(key, [task(key, f"test -s {key}")]) for key in ("day", "night"))
    (shop.repository / "loopwright.toml").write_text(
        f'max_attempts = 2\n[loops."../{night.name}"]\npermission_mode = "sandboxed-all"\nmax_attempts = 5\n'
    )
    shop.git("add", "loopwright.toml")
    shop.git("commit", "-q", "-m", "settings")
    for plan in (day, night):
        said = shop.run(plan)
        assert said.code == 0, said.out + said.err
    assert "(permission_mode is sandboxed-all, loopwright.toml:3)" in said.out + said.err
    by_day, by_night = shop.rows(Plan)
    assert [one.policy.max_attempts for one in (by_day, by_night)] == [2, 5]
    modes = [run.permission_mode for run in shop.rows(Run, role=Role.IMPLEMENTER)]
    assert modes == ["edit", "sandboxed-all"], "recorded on each run"
