"""Real programs of the Agent Client Protocol in a sandbox: run by `make test-agents`."""

from dataclasses import replace

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.agent_programs import installed
from tests.integration.agents.test_real_acp import CACHES, SETTINGS
from tests.waiting import eventually

from loopwright.adapters.agents.acp.profiles import PROFILES
from loopwright.core.rows.model import Plan, Role, Run
from loopwright.core.rows.waiting_rows import Question
from loopwright.testing import scenarios
from loopwright.testing.model_server import ModelServer, Reply, Scenario

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", SETTINGS)
def test_it_edits_asks_and_goes_on_where_it_can_write_only_what_it_declares(
    name: str, shop: Workshop
) -> None:
    if installed(name) is None:
        pytest.skip(f"{name} is not installed: `make test-agents` does it")
    (shop.repository / "Makefile").write_text("dist:\n\tcp made.txt dist.txt\n")
    shop.git("add", "-A")
    shop.git("commit", "-q", "-m", "a makefile")
    user = shop.program.user

    def files() -> dict[str, bytes]:
        found = {str(path.relative_to(user)): path for path in user.rglob("*") if path.is_file()}
        return {at: path.read_bytes() for at, path in found.items() if not at.startswith(CACHES)}

    turns = (
        Reply(tools=(scenarios.WRITES[name]("made.txt", "made\n"),)),
        Reply(tools=(scenarios.RUNS[name]("make dist"),)),
        Reply(text="Done."),
    )
    with ModelServer(replace(Scenario(turns=turns), aside=Reply(text="A title"))) as server:
        shop.program.env |= {
            "LOOPWRIGHT_AGENT": name,
            f"LOOPWRIGHT_AGENTS__{name.upper()}__BINARY": str(installed(name)),
            "LOOPWRIGHT_PERMISSION_MODE": "edit",
            "NO_PROXY": "127.0.0.1",
            **SETTINGS[name](user, server.url),
        }
        before = files()
        going = shop.start("run", str(shop.plan("making", [task("make", "grep -qx made dist.txt")])))
        eventually(lambda: shop.rows(Question) or going.process.poll() is not None, timeout=300)
        assert shop.rows(Question), going.out
        assert shop.row(Question).text == "May it run the command: make dist", going.out
        assert shop("answer", shop.row(Question).id, "yes").code == 0
        assert going.end(400) == 0, going.out
    assert shop.row(Plan).status == "VERIFIED"
    first, second = shop.rows(Run, role=Role.IMPLEMENTER)
    assert {first.sandbox, second.sandbox} == {"bubblewrap"}
    assert (first.session_ref == second.session_ref) is ("resume" in PROFILES[name].capabilities)
    assert files() == before, "what it wrote into its folders was its own copy"
