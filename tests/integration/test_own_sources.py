"""Which folders of a checkout an environment's Python loads, and the workspace's in their place."""

import json
import os
from pathlib import Path

import pytest

from loopwright.adapters.home.own_sources import Installed, editable_roots, installed_from, own_sources


class Environment:
    """A checkout, and a virtual environment that may have it installed."""

    def __init__(self, place: Path) -> None:
        self.checkout = place / "checkout"
        self.site = place / "venv" / "lib" / "python3.12" / "site-packages"
        self.workspace = place / "workspace"
        self.env = {"VIRTUAL_ENV": str(place / "venv"), "PATH": ""}
        (self.checkout / "src" / "calc").mkdir(parents=True)
        self.site.mkdir(parents=True)

    def path(self) -> list[str]:
        """Return what runs in the workspace have as their PYTHONPATH."""
        found = own_sources(self.env, self.checkout, self.workspace).get("PYTHONPATH", "")
        return found.split(os.pathsep) if found else []


@pytest.fixture
def venv(tmp_path: Path) -> Environment:
    return Environment(tmp_path)


def test_without_an_install_from_the_checkout_nothing_is_set(venv: Environment) -> None:
    (venv.site / "other.pth").write_text("/elsewhere\n# a comment\nimport os\n./eggs\n")
    assert own_sources(venv.env, venv.checkout, venv.workspace) == venv.env


def test_a_folder_that_a_pth_file_names_is_taken_from_the_workspace(venv: Environment) -> None:
    (venv.site / "calc.pth").write_text(f"{venv.checkout}/src\n")
    assert venv.path() == [f"{venv.workspace}/src"]


def test_modules_that_setuptools_maps_are_taken_from_the_workspace(venv: Environment) -> None:
    mapped = {
        "calc": f"{venv.checkout}/src/calc",
        "deep.down": f"{venv.checkout}/lib/deep/down",
        "solo": f"{venv.checkout}/solo",
        "renamed": f"{venv.checkout}/other/name",
    }
    (venv.site / "__editable___calc_1_finder.py").write_text(f"MAPPING: dict[str, str] = {mapped!r}\n")
    assert venv.path() == [f"{venv.workspace}/src", f"{venv.workspace}/lib", str(venv.workspace)]


def test_a_package_that_is_linked_is_taken_from_the_workspace(venv: Environment) -> None:
    (venv.site / "calc").symlink_to(venv.checkout / "src" / "calc")
    assert venv.path() == [f"{venv.workspace}/src"]


def test_a_pythonpath_into_the_checkout_leads_into_the_workspace(venv: Environment) -> None:
    venv.env["PYTHONPATH"] = f"{venv.checkout}/src{os.pathsep}/opt/more"
    assert venv.path() == [f"{venv.workspace}/src", "/opt/more"]


def test_an_environment_inside_of_the_checkout_is_no_source_of_it(tmp_path: Path) -> None:
    site = tmp_path / ".venv" / "lib" / "python3.12" / "site-packages"
    (site / "eggs").mkdir(parents=True)
    (site / "easy-install.pth").write_text("./eggs\n")
    assert editable_roots({"VIRTUAL_ENV": str(tmp_path / ".venv"), "PATH": ""}, tmp_path) == ()


def test_what_was_installed_from_the_checkout_is_known_by_its_record(venv: Environment) -> None:
    for name, url, about in (
        ("calc-1", venv.checkout.as_uri(), {"dir_info": {}}),
        ("live-1", venv.checkout.as_uri(), {"dir_info": {"editable": True}}),
        ("else-1", "file:///elsewhere", {"dir_info": {}}),
        ("wheel-1", "https://example.org/wheel.whl", {"archive_info": {}}),
    ):
        folder = venv.site / f"{name}.dist-info"
        folder.mkdir()
        (folder / "direct_url.json").write_text(json.dumps({"url": url, **about}))
    (venv.site / "odd-1.dist-info").mkdir()
    (venv.site / "odd-1.dist-info" / "direct_url.json").write_text("[]")
    assert installed_from(venv.env, venv.checkout) == (
        Installed(name="calc", editable=False, place=venv.site.resolve()),
        Installed(name="live", editable=True, place=venv.site.resolve()),
    )
