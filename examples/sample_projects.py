"""Make five small repositories with four plans each, and register them: `python sample_projects.py FOLDER`.

The agent follows a script (`loopwright.testing.scripted`), so no account is needed.
"""

import json
import subprocess
import sys
from pathlib import Path

PROJECTS, PLANS = 5, 4


def main(folder: Path) -> None:
    """Make the projects below a folder and register each with the home."""
    for number in range(1, PROJECTS + 1):
        project = folder / f"sample-{number}"
        project.mkdir(parents=True)
        script = folder / f"script-{number}.json"
        script.write_text(json.dumps(_script()))
        (project / "loopwright.toml").write_text(
            f"""agent = "scripted"
autonomy = "manual"
max_attempts = 1
gates = ["test -s README.md"]

[agents.scripted]
script = {json.dumps(str(script))}
"""
        )
        (project / "README.md").write_text("# Sample\n")
        (project / ".gitignore").write_text(".loopwright/\n")
        (project / "loopwright.templates").mkdir()
        (project / "loopwright.templates" / "sample.yaml").write_text(
            json.dumps(_template(), indent=2) + "\n"
        )
        for plan in range(1, PLANS + 1):
            (project / f"plan-{plan}.json").write_text(json.dumps(_plan(plan), indent=2) + "\n")
        for command in (
            ["git", "init", "-q", "-b", "main"],
            ["git", "add", "-A"],
            [
                "git",
                "-c",
                "user.name=sample",
                "-c",
                "user.email=sample@example.com",
                "commit",
                "-qm",
                "Begin",
            ],
            [sys.executable, "-m", "loopwright.cli", "projects", "add"],
        ):
            subprocess.run(command, cwd=project, check=True)


def _plan(number: int | str) -> dict[str, object]:
    def task(name: str) -> dict[str, object]:
        key = f"{name}-{number}"
        return {"id": key, "title": f"Write {key}", "acceptance": [f"test -s {key}"]}

    return {"title": f"Plan {number}", "tasks": [task("first"), task("second")]}


def _template() -> dict[str, object]:
    """Return a template of the same plans; its loops verify their work themselves."""
    plan = {**_plan("{{number}}"), "settings": {"autonomy": "auto"}}
    numbers = [str(number) for number in range(1, PLANS + 1)]
    return {"description": "Write two files", "parameters": {"number": {"choices": numbers}}, "plan": plan}


def _script() -> dict[str, object]:
    def writes(key: str) -> list[dict[str, object]]:
        return [{"write": key, "text": "done\n"}]

    tasks: dict[str, object] = {"more-1": [writes("more-1")]}
    for number in range(1, PLANS + 1):
        tasks[f"first-{number}"] = [[{"sleep": 1}, *writes(f"first-{number}")]]
        # The first attempt at the second task of plans 2 and 3 only claims to be done.
        fails = [[{"claim": "done"}]] if number in (2, 3) else []
        tasks[f"second-{number}"] = [*fails, writes(f"second-{number}")]
    return {"tasks": tasks}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
