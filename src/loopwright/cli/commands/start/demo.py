"""`demo`: run a plan on a sample repository, with an agent that follows a script."""

import json as json_format
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.markup import escape

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.config.home import check_platform
from loopwright.core.values.errors import Refused, UserError
from loopwright.core.values.wording import to_type
from loopwright.services.daemon.links import login_link
from loopwright.services.demo import SAMPLE, SCRIPT, SHOP, Story, make_sample, read_story

_PARALLEL: Final = 3
_STOPPED: Final = (ExitCode.UNFINISHED, ExitCode.INTERRUPTED)
_KEPT: Final = frozenset({"LOOPWRIGHT_RUN"})
"""The mark of a run that this demo may be part of: ending that run must find the processes of the demo too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """Where a demonstration takes place: nothing outside this folder is touched."""

    folder: Path

    @property
    def shop(self) -> Path:
        return self.folder / SHOP

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def environment(self) -> dict[str, str]:
        """Return our environment without the user's own settings: they must not change the demonstration."""
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("LOOPWRIGHT_") or name in _KEPT
        }
        return env | {
            "LOOPWRIGHT_HOME": str(self.home),
            "LOOPWRIGHT_AGENTS__SCRIPTED__SCRIPT": str(self.folder / SCRIPT),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
        }

    def call(self, *arguments: str, capture: bool) -> subprocess.CompletedProcess[str]:
        """Call this same program in the sample repository."""
        return subprocess.run(
            [sys.executable, "-m", "loopwright.cli", *arguments],
            cwd=self.shop,
            env=self.environment(),
            stdout=subprocess.PIPE if capture else None,
            text=True,
        )

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "--no-pager", *arguments],
            cwd=self.shop,
            env=self.environment(),
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The result of a demonstration."""

    story: Story | None
    run_code: int
    log: tuple[str, ...]
    untouched: bool
    """Whether the sample's own checkout is as it was."""
    receipt: Mapping[str, Any] | None
    receipt_path: str
    receipt_agrees: bool
    """Whether everything that the receipt says was found again in the repository."""
    receipt_said: str
    seconds: float

    @property
    def code(self) -> ExitCode:
        """0 only when the plan is verified, and its receipt says so and agrees with the repository."""
        if self.run_code != ExitCode.VERIFIED:
            # Whatever else stopped it, such as Ctrl-C or a full disk, says so by its own code.
            return next((code for code in ExitCode if code == self.run_code), ExitCode.NOT_VERIFIED)
        proven = self.receipt is not None and self.receipt["outcome"] == "verified" and self.receipt_agrees
        good = self.story is not None and self.story.plan.status == "VERIFIED" and self.untouched
        return ExitCode.VERIFIED if proven and good else ExitCode.NOT_VERIFIED


def demo(*, directory: Path | None = None, keep: bool = False, web: bool = False, json: bool = False) -> int:
    """Run a plan on a sample repository, with an agent that follows a script.

    Only the agent is scripted. Its processes, the workspaces, git, the checks, the landing and the receipt are real.

    Parameters
    ----------
    directory
        Make everything in this new or empty folder and keep it (default: a temporary one).
    keep
        Keep the temporary folder, to look around in it.
    web
        Show it in your browser instead, until you press Ctrl-C.
    json
        Print one JSON document, and nothing else.
    """
    check_platform(sys.platform)
    folder = _folder(directory)
    stays = keep or directory is not None
    stage = _Stage(folder=folder)
    out = console()
    try:
        if web:
            return _show_in_browser(stage, out)
        make_sample(stage.folder)
        if not json:
            _introduce(stage, out)
        with _interrupts_go_to_the_child():
            seen = _perform(stage, as_json=json)
        stays = stays or seen.code not in (ExitCode.VERIFIED, *_STOPPED)
        if json:
            print_json(_document(stage, seen, kept=stays))
        else:
            _conclude(stage, seen, out, kept=stays)
        return seen.code
    finally:
        if not stays:
            shutil.rmtree(folder, ignore_errors=True)


def _show_in_browser(stage: _Stage, out: Console) -> int:
    """Serve its own home, open its first page, and wait for Ctrl-C."""
    env = stage.environment()
    # The page makes the sample itself, with its own script.
    del env["LOOPWRIGHT_AGENTS__SCRIPTED__SCRIPT"]
    command = [sys.executable, "-m", "loopwright.cli"]
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(128 + signal.SIGTERM))
    daemon = subprocess.Popen(
        [*command, "serve", "--port", "0", "--json"],
        cwd=stage.folder,
        env=env,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for us: agents are stopped before their daemon ends
    )
    try:
        assert daemon.stdout is not None
        if any('"listening"' in line for line in daemon.stdout):
            link = login_link(stage.home, "/")
            out.print(f"The first page is {escape(link)}", soft_wrap=True)
            out.print("This link works once. Press Ctrl-C here to end the demonstration.")
            sys.stdout.flush()
            webbrowser.open(link)
        return daemon.wait()
    except KeyboardInterrupt:
        out.print("\nThe demonstration ends.")
        return ExitCode.VERIFIED
    finally:
        shop = stage.home / SAMPLE / SHOP
        if daemon.poll() is None and shop.exists():
            # Nothing may run any more; then there is nothing to stop.
            subprocess.run([*command, "stop"], cwd=shop, env=env, capture_output=True)
        daemon.terminate()
        daemon.wait()


def _folder(asked: Path | None) -> Path:
    if shutil.which("git") is None:
        raise UserError(
            "git was not found on this machine",
            code="git_missing",
            hint="install git 2.38 or newer; `loopwright doctor`",
        )
    if asked is None:
        return Path(tempfile.mkdtemp(prefix="loopwright-demo-"))
    folder = asked.expanduser().absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Refused(
            f"{folder} is not an empty folder",
            code="folder_not_empty",
            hint="give a new or empty one with --directory",
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _interrupts_go_to_the_child() -> Iterator[None]:
    """Let Ctrl-C reach only the run, which knows how to pause; we wait for it to end."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _perform(stage: _Stage, *, as_json: bool) -> _Seen:
    began = time.monotonic()
    checkout = _fingerprint(stage)
    asked = ("run", "plan.yaml", "--agent", "scripted", "--parallel", str(_PARALLEL))
    done = stage.call(*asked, *(("--json",) if as_json else ()), capture=as_json)
    story = read_story(stage.home) if (stage.home / "loopwright.db").exists() else None
    log: tuple[str, ...] = ()
    receipt, path, agrees, said = None, "", False, ""
    if story is not None:
        log = tuple(stage.git("log", "--oneline", "--graph", "--no-color", story.plan.branch).splitlines())
        path = f".loopwright/receipts/{story.plan.id}.json"
        if (stage.shop / path).exists():
            receipt = json_format.loads((stage.shop / path).read_text(encoding="utf-8"))
            checked = stage.call("receipt", "verify", path, capture=True)
            agrees, said = checked.returncode == 0, checked.stdout.rstrip()
    return _Seen(
        story=story,
        run_code=done.returncode,
        log=log,
        untouched=_fingerprint(stage) == checkout,
        receipt=receipt,
        receipt_path=path,
        receipt_agrees=agrees,
        receipt_said=said,
        seconds=time.monotonic() - began,
    )


def _fingerprint(stage: _Stage) -> tuple[str, str]:
    return stage.git("symbolic-ref", "HEAD") + stage.git("rev-parse", "HEAD"), stage.git(
        "status", "--porcelain"
    )


def _introduce(stage: _Stage, out: Console) -> None:
    out.print(
        "[bold]A demonstration.[/] A small shop, seven tasks, and an agent that follows a [bold]script[/]."
    )
    out.print("Everything else is real: processes, private clones, checks, landing, and the record.")
    out.print(f"It takes place in {escape(str(stage.folder))} and touches nothing else.\n")
    out.print("$ loopwright run plan.yaml --agent scripted", style="bold")
    sys.stdout.flush()


def _conclude(stage: _Stage, seen: _Seen, out: Console, *, kept: bool) -> None:
    if seen.story is not None:
        out.print(f"\n[bold]$ git log --oneline --graph {seen.story.plan.branch}[/]")
        for line in seen.log:
            out.print(f"  {escape(line)}")
    if seen.receipt is not None:
        out.print(f"\n[bold]$ {escape(to_type('receipt', 'verify', str(seen.receipt_path)))}[/]")
        for line in seen.receipt_said.splitlines():
            out.print(f"  {escape(line)}")
    out.print("\n[bold]What to notice[/]")
    for sentence in _sentences(seen):
        out.print(f"  • {escape(sentence)}")
    if seen.code is ExitCode.VERIFIED:
        out.print(
            f"\n[bold green]VERIFIED[/] in {seen.seconds:.0f} s. The agent was scripted: no model was asked."
        )
        out.print("With a real one, in your own repository:")
        out.print(
            "  loopwright doctor          # is everything here? (Claude Code has to be installed and logged in)"
        )
        out.print("  loopwright init            # finds your checks and writes loopwright.toml")
        out.print("  loopwright run plan.yaml --agent claude")
    elif seen.code in _STOPPED:
        out.print("\n[bold yellow]Stopped[/] before its end, as you asked.")
    else:
        out.print("\n[bold red]NOT VERIFIED[/]: the demonstration did not end as it should.")
        out.print("`loopwright doctor` looks at this machine.")
    if kept:
        out.print(f"Everything is in {escape(str(stage.folder))}; delete it when you are done.")


def _sentences(seen: _Seen) -> list[str]:
    """Return in plain words what the records show."""
    story = seen.story
    if story is None:
        return ["the run did not even begin"]
    found: list[str] = []
    if (claim := story.empty_claim) is not None:
        found.append(
            f'{claim.task}, attempt {claim.attempt}: the agent said "{claim.claim}" and had changed nothing. It was '
            f"not believed; attempt {claim.landed_in} did the work."
        )
    if (fixed := story.fixed) is not None:
        found.append(
            f'{fixed.task}, attempt {fixed.attempt}: the check "{fixed.check}" failed, saying "{fixed.evidence}". '
            f"Attempt {fixed.landed_in} got exactly that text, and passed."
        )
    if (pair := story.side_by_side) is not None:
        one, other = pair.tasks
        found.append(
            f"{one} and {other} were worked on at the same time ({pair.seconds:.1f} s side by side), each in "
            "its own clone."
        )
    if seen.untouched:
        found.append(
            "The checkout itself is as it was: the work is on a branch, and merging it is up to you."
        )
    return found


def _document(stage: _Stage, seen: _Seen, *, kept: bool) -> Mapping[str, Any]:
    story = seen.story
    return {
        "verified": seen.code is ExitCode.VERIFIED,
        "agent": "scripted",
        "seconds": round(seen.seconds, 1),
        "directory": str(stage.folder) if kept else None,
        "plan": story.plan if story else None,
        "empty_claim": story.empty_claim if story else None,
        "fixed": story.fixed if story else None,
        "side_by_side": story.side_by_side if story else None,
        "checkout_untouched": seen.untouched,
        "log": seen.log,
        "receipt": seen.receipt,
        "receipt_agrees": seen.receipt_agrees,
        "exit_code": int(seen.code),
    }
