"""What scripted roles write into an orchestrator folder: copied into the sample repository as `tools/roles.py`.

`python3 tools/roles.py STAGE` does the work of a stage's role in the current folder. `tools/scenario.json` says in
which round something else happens first: `reject`, `fan_out`, `late`, `request`, `semantic`, `reject_update`,
`never_update`.
"""

import json
import os
import sys
from pathlib import Path

FOLDER = Path("orchestrator")
SCENARIO = json.loads(os.environ.get("SCENARIO") or Path("tools/scenario.json").read_text())


def main(stage: str) -> None:
    """Do the work of one stage."""
    {"plan": plan, "implement": implement, "review": review}.get(stage, lambda: other(stage))()


def bundle() -> Path:
    return max(path for path in FOLDER.glob("roadmaps/*/rev-*") if path.is_dir())


def is_closed(folder: Path) -> bool:
    review = folder / "review-record.json"
    closeout = json.loads(review.read_text()).get("roadmap_closeout") if review.exists() else None
    is_semantic = bool(closeout) and closeout["mode"] == "semantic-update-required"
    names = ("closeout-record.json", "roadmap-update-request.md")
    return is_semantic or any((folder / name).exists() for name in names)


def current() -> str:
    if "ROUND" in os.environ:
        return os.environ["ROUND"]
    folders = sorted(FOLDER.glob("rounds/round-*"))
    if folders and not is_closed(folders[-1]):
        return folders[-1].name
    return f"round-{len(folders) + 1:03d}"


def wanted(what: str) -> bool:
    return current() in SCENARIO.get(what, [])


def write(name: str, value: object) -> None:
    path = FOLDER / "rounds" / current() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=2) + "\n")


def view() -> dict:
    return json.loads((bundle() / "roadmap-view.json").read_text())


def lineage() -> dict:
    chosen = FOLDER / "rounds" / current() / "selection-record.json"
    names = ("round_id", "roadmap_id", "roadmap_revision", "roadmap_dir", "milestone_id", "direction_id")
    if chosen.exists():
        known = json.loads(chosen.read_text())
        return {name: known[name] for name in (*names, "extracted_item_id")}
    roadmap = view()
    left = [one for one in roadmap["milestones"] if one["status"] != "done"]
    names_left = {one["milestone_id"] for one in left}
    ready = [one for one in left if not names_left & set(one["depends_on"])]
    milestone = ready[int(os.environ.get("CHOOSE", "0"))]
    return {
        "round_id": current(),
        "roadmap_id": roadmap["roadmap_id"],
        "roadmap_revision": roadmap["roadmap_revision"],
        "roadmap_dir": roadmap["roadmap_dir"],
        "milestone_id": milestone["milestone_id"],
        "direction_id": milestone["direction_ids"][0],
        "extracted_item_id": f"item-{current()}",
    }


def plan() -> None:
    if wanted("request"):
        write("roadmap-update-request.md", "### Roadmap Update Required\n- Reason: too coarse\n")
        return
    (FOLDER / "rounds" / current() / "selection-record.json").unlink(missing_ok=True)
    chosen, name = lineage(), current()
    nothing = {"depends_on_round_ids": [], "merge_after_item_ids": [], "parallel_group": None}
    folder = f"orchestrator/rounds/{name}"
    needed = ["left"] if wanted("late") else ["left", "right"]
    workers = (
        [worker(folder, name, one, one in needed) for one in ("left", "right")] if wanted("fan_out") else []
    )
    record = {
        "schema_version": "round-plan-record-v1",
        **chosen,
        "plan_path": f"{folder}/plan.md",
        "worker_mode": "fanout" if workers else "none",
        "workers": workers,
        "integration": {
            "summary": "Put both halves together",
            "depends_on_worker_ids": needed,
            "verification_commands": [f"test -s {one}/half" for one in needed],
            "integration_notes_path": f"{folder}/implementation-notes.md",
        }
        if workers
        else None,
    }
    selection = {
        "schema_version": "selection-record-v1",
        **chosen,
        "summary": "One item",
        "scheduler": nothing,
    }
    write("selection-record.json", selection)
    write("plan.md", "### Goal\nOne item.\n")
    write("round-plan-record.json", record)


def worker(folder: str, name: str, worker_id: str, blocks: bool) -> dict:
    place = f"{folder}/workers/{worker_id}"
    write(f"workers/{worker_id}/assignment.md", f"Write {worker_id}/half.\n")
    return {
        "worker_id": worker_id,
        "summary": f"The {worker_id} half",
        "assignment_path": f"{place}/assignment.md",
        "implementation_notes_path": f"{place}/implementation-notes.md",
        "handoff_path": f"{place}/handoff.md",
        "branch": f"orchestrator/{name}-{worker_id}",
        "worktree_path": f"orchestrator/worktrees/{name}-{worker_id}",
        "write_scope": [worker_id],
        "depends_on_worker_ids": [],
        "blocks_integration": blocks,
        "verification_commands": [f"test -s {worker_id}/half"],
    }


def implement() -> None:
    reviewed = (FOLDER / "rounds" / current() / "review-record.json").exists()
    right = reviewed or not wanted("reject")
    Path(f"made-{lineage()['milestone_id']}").write_text("right\n" if right else "wrong\n")
    write("implementation-notes.md", f"### Changes Made\n- one file, {'right' if right else 'wrong'}\n")


def other(stage: str) -> None:
    if stage in ("left", "right"):
        Path(stage).mkdir(exist_ok=True)
        Path(stage, "half").write_text(f"{stage}\n")
        for name in ("implementation-notes.md", "handoff.md"):
            write(f"workers/{stage}/{name}", f"{stage} is done\n")
    elif stage == "update-roadmap":
        update()
    elif stage == "update-review":
        source = max(FOLDER.glob("rounds/round-*")).name
        text = (FOLDER / "roadmap-updates" / f"{source}-roadmap-update.md").read_text()
        bad = source in SCENARIO.get("reject_update", []) and "second try" not in text
        bad = bad or source in SCENARIO.get("never_update", [])
        said = "REJECTED: say why in the rationale" if bad else "APPROVED"
        path = FOLDER / "roadmap-updates" / f"{source}-roadmap-update-review.md"
        path.write_text(
            f"### Checks Run\n- read it\n\n### Roadmap Compliance\n- yes\n\n### Decision\n{said}\n"
        )
    else:
        write("recovery-investigation.md", "### Diagnosis\nThe stage left no result.\n")


def update() -> None:
    source = max(FOLDER.glob("rounds/round-*")).name
    folder = FOLDER / "roadmap-updates"
    folder.mkdir(exist_ok=True)
    again = (folder / f"{source}-roadmap-update-review.md").exists()
    last = folder / f"{source}-roadmap-update.md"
    more = " and more" * (last.read_text().count(" and more") // 4 + 1) if again and last.exists() else ""
    more = more if source in SCENARIO.get("never_update", []) else ""
    text = "".join(
        f"### {one}\n- {'second try' if again else 'first try'}{more}\n\n"
        for one in ("Source Round", "Roadmap Change", "Rationale", "State Activation")
    )
    (folder / f"{source}-roadmap-update.md").write_text(text)
    state = json.loads((FOLDER / "state.json").read_text())
    old = FOLDER.parent / state["roadmap_dir"]
    new = old.parent / f"rev-{int(old.name[4:]) + 1:03d}"
    new.mkdir(exist_ok=True)
    for path in old.iterdir():
        changed = path.read_text().replace(old.name, new.name).replace("one after the other", "in any order")
        (new / path.name).write_text(changed)


def review() -> None:
    made = Path(f"made-{lineage()['milestone_id']}").read_text().strip()
    record = {"schema_version": "review-record-v3", **lineage(), "evidence_summary": f"The file is {made}."}
    milestone = lineage()["milestone_id"]
    status = next(one["status"] for one in view()["milestones"] if one["milestone_id"] == milestone)
    if made == "wrong":
        record |= {
            "decision": "rejected",
            "retry_target": "implement",
            "required_changes": ["Problem: it is wrong. Suggested fix: write it right."],
        }
    elif wanted("semantic"):
        closeout = {"mode": "semantic-update-required", "semantic_update_required_reason": "order changes"}
        empty = {"status_changes": [], "completion_pointers": [], "history_entries": []}
        record |= {"decision": "approved", "roadmap_closeout": {**closeout, **empty}}
    else:
        record |= {"decision": "approved", "roadmap_closeout": closeout_of(milestone, status)}
    # The record closes a semantic round, so it comes last.
    write("review.md", f"### Decision\n{record['decision']}\n")
    write("review-record.json", record)


def closeout_of(milestone: str, status: str) -> dict:
    done = f"{current()} completed {milestone}."
    return {
        "mode": "status-only",
        "status_changes": [
            {
                "milestone_id": milestone,
                "expected_current_status": status,
                "target_status": "done",
                "roadmap_view_anchor": f"{milestone}-status",
            }
        ],
        "completion_pointers": [{"anchor_id": f"{milestone}-completion", "text": done}],
        "history_entries": [{"anchor_id": "history", "text": done}] if "history" in view()["anchors"] else [],
        "semantic_update_required_reason": None,
    }


main(sys.argv[1])
