"""What agents have in the user's HOME: private to each run, but for the login, which all runs share."""

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.integration.keeper.conftest import MakeSpec, keepers, make_spec, text_of

from loopwright.adapters import registry
from loopwright.adapters.agents.claude.claude import ClaudeAgent
from loopwright.adapters.agents.transcripts import carry_transcript
from loopwright.adapters.home.user_folder import Views
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.adapters.sandbox.bubblewrap import Bubblewrap
from loopwright.core.values.containment import HomeView, PrivatePath
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import Limits
from loopwright.engine.processes.runs import agent_spec, drive_agent
from loopwright.ports import AgentRequest, Invocation, Reach, RunSpec, Spent

__all__ = ["keepers", "make_spec"]

AGENTS = ("claude", "codex", "gemini", "opencode", "goose", "qwen", "copilot", "claude-acp")
PLANTED = (
    *("settings.json", "settings.local.json", "config.toml", "config.yaml", "config.json", "opencode.json"),
    *("mcp.json", "mcp-config.json", "hooks.json", "hooks/run.sh", "plugins/p/index.js", "plugin/p.js"),
    *("extensions/e/extension.json", "skills/s/SKILL.md", "commands/c.md", "agents/a.md", "prompts/p.md"),
    *("rules/default.rules", "CLAUDE.md", "AGENTS.md", "GEMINI.md", ".goosehints", "memories/m.md"),
)
PLANT = """
import os, sys
for folder in sys.argv[2:]:
    for file in sys.argv[1].split():
        path = os.path.join(folder, file)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "a") as planted:
                planted.write("planted")
            with open(path + ".new", "w") as planted:
                planted.write("planted")
            os.rename(path + ".new", path)
        except OSError:
            if folder.startswith(os.path.expanduser("~")):
                raise
"""
"""Writes into each file, and puts a new one in its place."""


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def invoked(name: str, place: Path) -> Invocation:
    request = AgentRequest(prompt="p", workspace=place, run_directory=place / "run", options={})
    return registry.agent(name).invocation(request)


async def test_nothing_that_an_agent_plants_in_its_folder_reaches_the_users(
    keepers: ProcessKeepers, make_spec: MakeSpec, tmp_path: Path, bwrap: str
) -> None:
    """Hooks, tool servers, plugins, skills, commands and memory: for each adapter, with a sandbox and without."""
    own = tmp_path / "own"
    own.mkdir()
    specs: dict[tuple[str, bool], RunSpec] = {}
    users: dict[str, dict[str, bytes]] = {}
    for name in AGENTS:
        user = tmp_path / name
        folders = [one.path for one in invoked(name, own).home if one.path.endswith("/") and not one.shared]
        assert folders, name
        for folder in folders:
            for path in ("settings.json", "skills/s/SKILL.md", "config.toml"):
                (user / folder / path).parent.mkdir(parents=True, exist_ok=True)
                (user / folder / path).write_text(f"the user's {path}")
        before = contents(user)
        env, view = Views(real=user, own=(own,))(
            {"PATH": "/usr/bin:/bin"}, invoked(name, own), own / "users" / name
        )
        walls = Bubblewrap(program=bwrap, own=(own,))
        for contained in (False, True):
            seen = walls.view(view) if contained else view
            assert seen is not None
            seen = replace(seen, place=f"{seen.place}-{contained}")
            directory = own / f"run-{name}-{contained}"
            targets = [f"{seen.place}/{folder}" for folder in folders]
            targets += [f"{user}/{folder}" for folder in folders if contained]
            argv = make_spec(py=PLANT).argv
            spec = make_spec(
                *argv, " ".join(PLANTED), *targets, directory=directory, home=seen, env=env, cwd=own
            )
            if contained:
                reach = Reach(directory=directory, cwd=own, env=spec.env, argv=spec.argv, home=seen)
                spec = replace(spec, argv=(*walls.prefix(reach), *spec.argv), contained=True)
            specs[name, contained] = spec
        users[name] = before
    await asyncio.gather(*(keepers.start(spec) for spec in specs.values()))
    for about, spec in specs.items():
        ended = await keepers.wait(spec.directory)
        assert (about, ended.code, ended.error) == (about, 0, ""), await text_of(keepers, spec)
    for name, before in users.items():
        assert contents(tmp_path / name) == before, name


class _Tokens(ThreadingHTTPServer):
    """Gives out logins: a refresh token is good for one time, an access token for three."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.lock = threading.Lock()
        self.n = 1
        self.left = 3
        self.refused = 0

    def login(self) -> dict[str, Any]:
        expires = 1_000_000_000_000 + self.n
        tokens = {
            "accessToken": f"access-{self.n}",
            "refreshToken": f"refresh-{self.n}",
            "expiresAt": expires,
        }
        return {"claudeAiOauth": tokens}


class _Answers(BaseHTTPRequestHandler):
    server: _Tokens

    def do_GET(self) -> None:
        kind, _, token = self.path.strip("/").partition("/")
        with self.server.lock:
            good = token == f"{kind}-{self.server.n}"
            if kind == "access":
                good = good and self.server.left > 0
                self.server.left -= good
            elif good:
                self.server.n, self.server.left = self.server.n + 1, 3
            else:
                self.server.refused += 1
            body = json.dumps(self.server.login()).encode()
        self.send_response(200 if good else 401)
        self.end_headers()
        self.wfile.write(body if good and kind == "refresh" else b"")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def tokens() -> Iterator[_Tokens]:
    server = _Tokens()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


AGENT = """
import http.client, json, os, sys, time
own = os.path.expanduser("~/.claude/.credentials.json")
def ask(path):
    line = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    line.request("GET", path)
    answer = line.getresponse()
    return answer.status, answer.read()
def login():
    return json.load(open(own))["claudeAiOauth"]
done = 0
while done < 9:
    used = login()
    if ask("/access/" + used["accessToken"])[0] == 200:
        done += 1
        continue
    status, renewed = ask("/refresh/" + used["refreshToken"])
    if status == 200:
        open(own + ".tmp", "wb").write(renewed)
        os.rename(own + ".tmp", own)
        continue
    until = time.monotonic() + 30
    while login() == used:
        if time.monotonic() > until:
            sys.exit("logged out")
        time.sleep(0.01)
"""
"""Works as Claude Code does: renews what is used up, and reads its file again if another one was quicker."""


async def test_four_runs_that_renew_one_login_log_nobody_out(
    keepers: ProcessKeepers, make_spec: MakeSpec, tmp_path: Path, tokens: _Tokens
) -> None:
    user = tmp_path / "user"
    file = user / ".claude" / ".credentials.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({**tokens.login(), "mine": 1}))
    specs = []
    for n in range(4):
        env, view = Views(real=user, own=())({}, invoked("claude", tmp_path), tmp_path / "users" / str(n))
        argv = make_spec(py=AGENT).argv
        specs.append(make_spec(*argv, str(tokens.server_port), home=view, env=env))
    await asyncio.gather(*(keepers.start(spec) for spec in specs))
    for spec in specs:
        ended = await keepers.wait(spec.directory)
        assert (ended.code, ended.error) == (0, ""), await text_of(keepers, spec)
    assert tokens.n >= 12, "36 uses, three for each login"
    assert json.loads(file.read_text()) == {**tokens.login(), "mine": 1}, "the newest of all"


async def test_a_run_that_was_refused_because_another_one_renewed_the_login_is_tried_again(
    keepers: ProcessKeepers, tmp_path: Path
) -> None:
    user = tmp_path / "user"
    file = user / ".claude" / ".credentials.json"
    file.parent.mkdir(parents=True)

    def write(name: str, expires: int) -> None:
        tokens = {"accessToken": f"a-{name}", "refreshToken": f"r-{name}", "expiresAt": expires}
        file.write_text(json.dumps({"claudeAiOauth": tokens}))

    refused = Path(__file__).parents[2] / "data" / "streams" / "c_noauth.out"
    program = tmp_path / "claude"
    program.write_text(
        "#!/bin/sh\n"
        f'[ -n "$WAITS" ] && echo up > {tmp_path}/up\n'
        '[ -n "$WAITS" ] && while grep -q a-old ~/.claude/.credentials.json; do sleep 0.02; done\n'
        f"cat {refused}\nexit 1\n"
    )
    program.chmod(0o755)
    for waits, expected in (("", Failure.AUTH), ("1", Failure.LOGIN_RENEWED)):
        write("old", 1)
        agent = ClaudeAgent(binary=str(program))
        directory = tmp_path / f"run{waits}"
        request = AgentRequest(prompt="p", workspace=tmp_path, run_directory=directory, options={})
        invocation = agent.invocation(request)
        env, view = Views(real=user, own=())(
            {"PATH": "/usr/bin:/bin", "WAITS": waits}, invocation, tmp_path / "h"
        )
        spec = agent_spec(request, invocation, run_id=f"run_{waits}", env=env, limits=Limits(), home=view)
        driven = asyncio.ensure_future(
            drive_agent(
                keepers,
                agent,
                spec,
                request=request,
                before=Spent(),
                interrupt=asyncio.Event(),
                heard=lambda _event: None,
            )
        )
        while waits and not (tmp_path / "up").exists():
            await asyncio.sleep(0.01)
        if waits:
            write("new", 2)
        ended = await driven
        assert ended.result is not None
        assert ended.result.failure is expected, ended


def test_only_the_transcript_of_the_runs_own_conversation_is_carried_to_the_user(tmp_path: Path) -> None:
    (claude,) = (one for one in ClaudeAgent().invocation(
        AgentRequest(prompt="p", workspace=tmp_path, run_directory=tmp_path, options={})
    ).home if one.sessions)  # fmt: skip
    user, shelf = tmp_path / "user" / ".claude", tmp_path / "h.sessions"
    copy = PrivatePath(
        path=".claude/", source=str(user), sessions=claude.sessions, transcript=claude.transcript
    )
    view = HomeView(place="", real=str(tmp_path / "user"), private=(copy,), sessions=str(shelf))
    slug = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in str(tmp_path))
    own, other = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
    (user / "projects" / slug).mkdir(parents=True)
    (user / "projects" / slug / f"{other}.jsonl").write_text("the user's\n")
    for path in (
        f"{slug}/{own}.jsonl",
        f"{slug}/{other}.jsonl",
        f"{slug}/memory/M.md",
        f"-home-me/{own}.jsonl",
    ):
        (shelf / ".claude" / "projects" / path).parent.mkdir(parents=True, exist_ok=True)
        (shelf / ".claude" / "projects" / path).write_text("one\n")

    def carried(session: str) -> dict[str, bytes]:
        carry_transcript(view, session, tmp_path)
        return contents(user / "projects")

    theirs = {f"{slug}/{other}.jsonl": b"the user's\n"}
    assert carried(own) == {**theirs, f"{slug}/{own}.jsonl": b"one\n"}
    said = shelf / ".claude" / "projects" / slug / f"{own}.jsonl"
    said.write_text("one\ntwo\n")
    assert carried(own) == {**theirs, f"{slug}/{own}.jsonl": b"one\ntwo\n"}, "the conversation went on"
    said.write_text("something else\n")
    assert carried(own) == {**theirs, f"{slug}/{own}.jsonl": b"one\ntwo\n"}, "it does not go on from there"
    for session in (other, ".*", "../../x", ""):
        assert carried(session) == {**theirs, f"{slug}/{own}.jsonl": b"one\ntwo\n"}, session
