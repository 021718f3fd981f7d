"""What `inspect` and `plan` put into a packet of the project."""

from pathlib import Path

import pytest

from loopwright.core.plans.inspection_packets import in_markdown
from loopwright.services.homes.context import needed_place
from loopwright.services.inspection import project_packet
from loopwright.testing.sample import make_sample_repository


async def test_what_is_handed_to_agents_is_a_secret_in_a_packet_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_sample_repository(tmp_path / "shop")
    (tmp_path / "shop" / "loopwright.toml").write_text('environment = ["LICENCE"]\n')
    monkeypatch.chdir(tmp_path / "shop")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LICENCE", "0123-4567-89ab")
    packet = await project_packet("Use the licence 0123-4567-89ab", needed_place())
    assert packet.goal == "Use the licence [redacted]"
    assert "0123-4567-89ab" not in in_markdown(packet)
