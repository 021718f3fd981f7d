"""The shell script beside a receipt: it verifies the receipt with only sh, git and sha256sum."""

import hashlib
import shlex
from collections.abc import Iterator
from typing import Final

from loopwright.core.gates.verdicts import gate_key
from loopwright.core.policy.finishing import PULL_REQUEST
from loopwright.core.receipts.events import decided
from loopwright.core.receipts.evidence import gate_evidence
from loopwright.core.receipts.landing_hashes import landings
from loopwright.core.receipts.model import FinishEntry, Receipt, VerdictEntry
from loopwright.core.receipts.verdicts import (
    held_out_tasks,
    latest_verdicts,
    result_commands,
    task_commands,
)
from loopwright.core.values.states import FinishState, TaskState

_LONGEST: Final = 4000
"""The most characters of a gap or note that the script prints. The end says what to do."""
_HEAD: Final = """\
#!/bin/sh
# Checks a receipt of Loopwright against a git repository. It needs sh, git and sha256sum (or shasum), nothing else.
#     sh {name} [REPOSITORY]
# REPOSITORY is the current folder unless you say otherwise. It reads git's objects and changes nothing.
# The exit code is 0 when everything agrees, 1 when something differs, 2 when it could not look.
#
# What it cannot tell: whether the gates would pass again (`loopwright receipt replay` runs them), and whether the
# outcome follows from the facts (`loopwright receipt verify` computes it). Read the facts at its end and judge.
set -u
LC_ALL=C
export LC_ALL
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd) || exit 2
receipt=$here/$(basename -- "$0" .sh).json

cannot() {{
    printf 'cannot look: %s\\n' "$1" >&2
    exit 2
}}

hash() {{
    if command -v sha256sum >/dev/null 2>&1; then sha256sum; else shasum -a 256; fi | {{
        read -r sum rest
        printf '%s\\n' "$sum"
    }}
}}

differences=0
same() {{ # WHAT EXPECTED FOUND
    if [ "$2" != "$3" ]; then
        differences=$((differences + 1))
        printf 'differs: %s\\n    receipt: %s\\n    found:   %s\\n' "$1" "$2" "${{3:-nothing}}"
    fi
}}

cd -- "${{1:-.}}" || cannot "folder ${{1:-.}} does not exist"
objects=$(git rev-parse --git-path objects 2>/dev/null) || cannot "$(pwd) is not a git repository"
objects=$(CDPATH= cd -- "$objects" && pwd) || cannot "the objects of $(pwd) cannot be read"
format=$(git rev-parse --show-object-format) || exit 2
scratch=$(mktemp -d) || exit 2
trap 'rm -rf -- "$scratch"' EXIT
trap 'exit 2' HUP INT TERM
# git reads these objects alone: it ignores configuration, attributes, grafts and replacements.
GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 GIT_NO_REPLACE_OBJECTS=1
export GIT_CONFIG_NOSYSTEM GIT_CONFIG_GLOBAL GIT_ATTR_NOSYSTEM GIT_NO_REPLACE_OBJECTS
git init -q --bare --template= --object-format="$format" "$scratch/git" || exit 2
GIT_DIR=$scratch/git GIT_OBJECT_DIRECTORY=$objects
export GIT_DIR GIT_OBJECT_DIRECTORY

commit() {{ # WHAT SHA TREE
    same "the tree of $1" "$3" "$(git rev-parse --verify -q "$2^{{tree}}" 2>&1)"
}}

change() {{ # WHAT OLD NEW SHA256
    git diff-tree -r -p --binary --full-index --no-renames --no-color "$2^{{tree}}" "$3^{{tree}}" \\
        >"$scratch/change" 2>&1 || printf 'broken' >>"$scratch/change"
    same "the change of $1" "$4" "$(hash <"$scratch/change")"
}}

whole() {{
    # git believes an object's name when it reads it, so each one is named again after its content.
    while read -r object path; do
        kind=$(git cat-file -t "$object" 2>/dev/null)
        found=$(git cat-file "$kind" "$object" 2>/dev/null | git hash-object -t "$kind" --stdin 2>/dev/null)
        same "object $object" "$object" "$found"
    done <"$scratch/objects"
}}

landed() {{ # WHAT SHA PARENT TREE SHA256
    commit "$1" "$2" "$4"
    same "what $1 landed on" "$3" "$(git rev-parse --verify -q "$2^1" 2>&1)"
    change "$1" "$3" "$2" "$5"
}}

stated() {{ # WHAT SHA
    same "the part of the receipt that $1 names" "sha256:$(hash)" \
        "$(git log -1 --format='%(trailers:key=Loopwright-Receipt,valueonly,separator=%x2C)' "$2" 2>&1)"
}}

ended() {{ # WHAT SHA TREE BASE
    commit "$1" "$2" "$3"
    git rev-list --objects "$2" "^$4" >"$scratch/objects" 2>/dev/null || same "the objects of $1" whole damaged
    whole
}}

names() {{ # WHAT SHA END RECEIPT
    same "the end that $1 names" "$3" \
        "$(git log -1 --format='%(trailers:key=Loopwright-Finish,valueonly,separator=%x2C)' "$2" 2>&1)"
    same "the receipt that $1 names" "sha256:$4" \
        "$(git log -1 --format='%(trailers:key=Loopwright-Receipt,valueonly,separator=%x2C)' "$2" 2>&1)"
}}

frozen() {{ # END SHA256
    if [ -f "$here/$1.json" ]; then
        same "the receipt of $1" "$2" "$(hash <"$here/$1.json")"
    else
        printf 'not here: the receipt %s.json\n' "$1"
    fi
}}

evidence() {{ # RUN FILE SHA256
    file=$here/evidence/$1/gate/$2
    if [ -f "$file" ]; then
        same "the recorded $1/$2" "$3" "$(hash <"$file")"
    elif [ -d "$here/evidence" ]; then
        printf 'not here: the recorded %s/%s\\n' "$1" "$2"
    fi
}}
"""

_RESULT: Final = """\
same 'the base' {base} "$(git rev-parse --verify -q '{base}^{{commit}}' 2>&1)"
commit 'the result' {result} {tree}
git merge-base --is-ancestor {base} {result} 2>/dev/null || same 'the result' 'contains the base' 'does not'
change 'the whole plan' {base} {result} {diff}

git rev-list --objects {base}..{result} >"$scratch/objects" 2>/dev/null ||
    same 'the objects of the result' whole damaged
whole

# Each task that landed did so once, what a person had taken back apart, and nothing else says that it did, except for
# what others put on the branch: that lands nothing, whatever it says.
others='{others}'
git log --first-parent --format='%H %(trailers:key=Loopwright-Task,valueonly,separator=%x2C)' {base}..{result} \\
    2>/dev/null | while read -r sha task; do
    case "$others" in *"$sha"*) continue ;; esac
    if [ -n "$task" ]; then printf '%s %s\\n' "$task" "$sha"; fi
done | sort >"$scratch/landings"
same 'which commits carry a task' "$(cat <<'END'
{landings}END
)" "$(cat "$scratch/landings")"
git log --first-parent --format='%H %(trailers:key=Loopwright-Reverts,valueonly,separator=%x20)' {base}..{result} \\
    2>/dev/null | while read -r sha gone; do
    case "$others" in *"$sha"*) continue ;; esac
    for one in $gone; do printf '%s %s\\n' "$sha" "$one"; done
done | sort >"$scratch/taken"
same 'which commits take work back' "$(cat <<'END'
{taken}END
)" "$(cat "$scratch/taken")"
"""

_TAIL: Final = """\

cat <<'END'
{facts}END
if [ "$differences" -gt 0 ]; then
    printf 'DIFFERS: %s of its statements do not hold\\n' "$differences"
    exit 1
fi
printf 'AGREES: every commit, tree and change that it names is as it says\\n'
"""


def check_script(receipt: Receipt, text: str, *, name: str) -> str:
    """Return the script for a receipt whose shape was checked and whose file has this text."""
    plan = receipt.plan
    parts = [_HEAD.format(name=shlex.quote(name)), ""]
    parts.append(f'same \'the receipt itself\' {_sha256(text)} "$(hash <"$receipt")"\n')
    landed = [task for task in receipt.tasks if task.landed_sha is not None]
    back = [one for one in receipt.overrides if one.commit is not None]
    if plan.result_sha is not None:
        parts.append(
            _RESULT.format(
                base=plan.base_sha,
                result=plan.result_sha,
                others=" ".join(one.sha for one in plan.not_ours),
                tree=shlex.quote(plan.result_tree or ""),
                diff=shlex.quote(plan.diff_sha256 or ""),
                landings=_sorted(
                    *(f"{task.id} {task.landed_sha}" for task in landed),
                    *(f"{pair.task} {pair.sha}" for one in back for pair in one.took_out),
                ),
                taken=_sorted(*(f"{one.commit} {pair.sha}" for one in back for pair in one.took_out)),
            )
        )
    for task in landed:
        told = (task.landed_sha, task.parent_sha, task.tree, task.diff_sha256)
        words = (f"task {task.key}", *(one or "" for one in told))
        parts.append(" ".join(("landed", *map(shlex.quote, words))))
    for sha, what, text in landings(receipt):
        parts.append(f"stated {shlex.quote(what)} {sha} <<'END'\n{text}END")
    for one in receipt.finishes:
        parts += _ended(one, plan.base_sha)
    for directory, file, sha256 in gate_evidence(receipt):
        parts.append(f"evidence {directory} {file} {shlex.quote(sha256)}")
    return "\n".join(parts) + _TAIL.format(facts="".join(f" {line}\n" for line in _facts(receipt)))


def _sorted(*lines: str) -> str:
    return "".join(f"{line}\n" for line in sorted(lines))


def _ended(one: FinishEntry, base: str) -> Iterator[str]:
    """Yield what the script checks for one finish of the plan."""
    what, commit = f"the end {one.id}", one.commit_sha
    if one.receipt_sha256 is not None:
        yield f"frozen {one.id} {one.receipt_sha256}"
    if one.state is FinishState.FINISHED and commit is not None:
        yield f"ended {shlex.quote(what)} {commit} {shlex.quote(one.tree or '')} {base}"
        if one.carries_hash:
            yield f"names {shlex.quote(what)} {commit} {one.id} {one.receipt_sha256}"


def _facts(receipt: Receipt) -> Iterator[str]:
    """Return what the user should know before believing the receipt, as lines that cannot end their document."""
    plan = receipt.plan
    yield from ("", f"The receipt says: {_line(receipt.outcome)}", f"  {_line(plan.title)}")
    latest = latest_verdicts(receipt)
    yield from _ran(
        "on the tree of the result", latest.get((plan.result_tree, gate_key(result_commands(receipt))))
    )
    for task, commands in held_out_tasks(receipt):
        judged = latest.get((plan.result_tree, gate_key(commands)))
        yield from _ran(f"on the tree of the result, held out from task {_line(task.key)}", judged)
    reached = _finished(receipt)
    for task in receipt.tasks:
        yield f"task {_line(task.key)}: {_line(task.outcome)}"
        judged = latest.get((task.tree, gate_key(task_commands(plan, task))))
        for where in reached.get(task.id, ()):
            yield f"  taken over as {_line(where)}"
        yield from _ran(
            "on the tree that landed" if task.landed_sha else "on a tree that did not land", judged
        )
    if receipt.overrides:
        yield "Decided by people:"
    keys = {task.id: task.key for task in receipt.tasks}
    for one in receipt.overrides:
        yield "  - " + _line(decided(one, keys))
    yield "Gaps:" if receipt.gaps else "Gaps: none"
    for gap in receipt.gaps:
        yield f"  - {_line(gap.cause, most=_LONGEST)}"
        yield f"    {_line(gap.remedy, most=_LONGEST)}"
    yield "Notes:"
    yield from (f"  - {_line(note.text, most=_LONGEST)}" for note in receipt.notes)
    yield ""


def _finished(receipt: Receipt) -> dict[str, list[str]]:
    """Return the commits or pull requests that included each task, by task id."""
    found: dict[str, list[str]] = {}
    for one in receipt.finishes:
        where = one.request_url if one.how == PULL_REQUEST else one.commit_sha
        if one.state is not FinishState.FINISHED or where is None:
            continue
        for task in receipt.tasks:
            chosen = task.id in one.tasks if one.tasks else True
            if chosen and task.status is TaskState.COMPLETE:
                found.setdefault(task.id, []).append(where)
    return found


def _ran(where: str, verdict: VerdictEntry | None) -> Iterator[str]:
    for command in verdict.commands if verdict else ():
        yield f"  exit {command.exit_code} {where}: {_line(command.command)}"


def _line(text: str, *, most: int = 200) -> str:
    """Return external text on one line, without characters that could control a terminal."""
    return "".join(one if one.isprintable() else " " for one in text)[:most]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
