"""Take the pictures of the dashboard in the docs: a real daemon, the sample project, Debian's chromium.

`make screenshots` writes them into docs/pictures/.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, Final

from playwright.sync_api import Page, expect, sync_playwright

from loopwright.services.demo import SCRIPT, SHOP, make_sample
from loopwright.testing.sample import demo_script
from loopwright.testing.scripted import write_script

PICTURES: Final = Path(__file__).resolve().parent.parent / "docs" / "pictures"
_FLAGS: Final = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
_SIZE: Final = {"width": 1280, "height": 720}
_PATIENCE_MS: Final = 120_000


def main() -> int:
    """Run the sample plan slowly, and take pictures on the way."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.stderr.write("chromium is not installed: apt-get install chromium\n")
        return 1
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_sample(folder)
        write_script(folder / SCRIPT, demo_script(pause_s=2.0))
        env = _environment(folder)
        _call(folder, env, "projects", "add")
        with _serve(folder, env) as daemon:
            try:
                said = _listening(daemon.stdout)
                _call(folder, env, "run", "plan.yaml", "--agent", "scripted", "--parallel", "3", "--detach")
                _take(chromium, said["url"], Path(said["token_file"]).read_text().strip())
            finally:
                daemon.terminate()
    return 0


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOOPWRIGHT_")}
    return kept | {
        "LOOPWRIGHT_HOME": str(folder / "home"),
        "LOOPWRIGHT_AGENTS__SCRIPTED__SCRIPT": str(folder / SCRIPT),
        "XDG_CONFIG_HOME": str(folder / "config"),
    }


def _call(folder: Path, env: dict[str, str], *arguments: str) -> None:
    command = [sys.executable, "-m", "loopwright.cli", *arguments]
    subprocess.run(command, cwd=folder / SHOP, env=env, check=True, stdout=subprocess.DEVNULL)


def _serve(folder: Path, env: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "loopwright.cli", "serve", "--port", "0", "--json"]
    return subprocess.Popen(command, cwd=folder / SHOP, env=env, stdout=subprocess.PIPE, text=True)


def _listening(out: IO[str] | None) -> dict[str, Any]:
    assert out is not None
    for line in out:
        said: dict[str, Any] = json.loads(line)
        if said.get("type") == "listening":
            return said
    raise SystemExit("the daemon ended before it listened")


def _take(chromium: str, url: str, token: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        page = browser.new_page(viewport=_SIZE)  # type: ignore[arg-type]
        page.goto(f"{url}/login")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.locator(".active-task").nth(1).wait_for(timeout=_PATIENCE_MS)
        _shoot(page, "home")
        page.get_by_role("link", name="A very small shop").click()
        expect(page.locator(".page-head .meta")).to_contain_text(
            re.compile("[34] of 7"), timeout=_PATIENCE_MS
        )
        _shoot(page, "plan")
        expect(page.locator(".page-head .status")).to_have_text(re.compile("Verified"), timeout=_PATIENCE_MS)
        page.get_by_role("link", name="Timeline").click()
        page.locator(".gantt").wait_for()
        _shoot(page, "timeline")
        page.get_by_role("link", name="totals").first.click()
        page.locator(".attempt").nth(1).wait_for()
        _shoot(page, "task")
        browser.close()


def _shoot(page: Page, name: str) -> None:
    page.screenshot(path=PICTURES / f"{name}.png")


if __name__ == "__main__":
    sys.exit(main())
