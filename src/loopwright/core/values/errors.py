"""Every error that Loopwright raises on purpose.

LoopwrightError
├── UserError            the user can fix it: one line with what to do, exit code 2; carries a code of `error_codes`
│   ├── BadId
│   ├── BadPlan          carries located problems
│   ├── BadConfig
│   ├── NotARepository
│   ├── NotFound
│   │   └── Ambiguous    several things have that name; carries them
│   ├── NotAllowed       the caller's token does not allow it
│   ├── Refused          the state does not allow it
│   │   └── NotTold      a work source took in no status; carries the items
│   └── Held             another process holds what was asked for
├── IllegalTransition    a state machine was asked for an edge it does not have: a defect
├── FenceLost            another worker took this attempt over: drop the work, change nothing
├── LeaseLost            this worker's lease lapsed
├── StaleVersion         the row changed between reading and writing
├── CannotRun            a run could not be created: recorded on its task
│   ├── Denied           a sandbox refused what a gate needs; names the path and the setting
│   ├── NoEnvironment    a variable or a program of the plan's environment is missing here; names it
│   ├── TookTooMuch      a gate took more room on the disk than it may; names the setting
│   ├── BranchRewritten  the plan branch was rewritten; says how to continue
│   └── RepositoryGone   the project's repository is not there any more; says how to continue
├── GitFailed            git refused, with its own words
│   ├── CommitGone       git works, and has no such commit
│   └── Unrecordable     git works, and cannot take in what a workspace holds; names the files
├── MergeConflict        the candidate cannot be built
├── Busy                 a service asks to come back later; says when
├── MachineTrouble       the machine refused what Loopwright needs; says what to do, exit code 6
│   ├── TooManyOpenFiles
│   ├── OutOfMemory
│   ├── DiskFull
│   ├── NotPermitted
│   └── FileGone
├── UnjudgedTree         a gate does not judge the tree; says what it loads and what to do, exit code 6
├── StoreUnavailable     the database cannot be reached or written
│   ├── DamagedDatabase  its file is damaged; names the backup and the command that restores it
│   ├── DatabaseGone     its file was deleted or moved
│   └── DatabaseReplaced another file is in its place
├── DamagedRow           something in the database is not what was written there
└── NewerDatabase        the database was written by a newer Loopwright
"""

import errno
from dataclasses import dataclass
from typing import ClassVar


class LoopwrightError(Exception):
    """Something went wrong in Loopwright."""

    code: str = "error"
    """The stable name of the cause."""


class UserError(LoopwrightError):
    """Something that the user can fix; `code` names the cause and `hint` says what to do."""

    def __init__(self, message: str, *, code: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


class BadId(UserError):
    """A text that should be an id is not one."""

    code = "bad_id"

    def __init__(self, message: str) -> None:
        super().__init__(message, code=type(self).code)


class BadPlan(UserError):
    """The plan cannot be used; each problem says where it is."""

    code = "bad_plan"

    def __init__(self, source: str, problems: tuple[str, ...], *, hint: str | None = None) -> None:
        # A located problem names the file already.
        super().__init__(
            "; ".join(one if one.startswith(source) else f"{source}: {one}" for one in problems),
            code=type(self).code,
            hint=hint,
        )
        self.source = source
        self.problems = problems
        self.kind = ""
        """The format that it was read in, if known."""


class BadConfig(UserError):
    """A setting is unknown or has a wrong value."""

    def __init__(
        self, message: str, *, code: str, hint: str | None = None, options: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.options = options
        """The agent options that are wrong, if any. The code that read them knows the place."""


class NotARepository(UserError):
    """The folder is not a git repository, or has no commit yet."""


class NotFound(UserError):
    """Nothing has that name or id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One possible meaning of a name."""

    handle: str
    """What to type for this one."""
    state: str
    title: str
    """The title of its plan."""
    changed_s: float
    """How many seconds ago it last changed."""


class Ambiguous(NotFound):
    """Several things have that name."""

    code = "ambiguous"

    def __init__(self, text: str, choices: tuple[Choice, ...]) -> None:
        names = ", ".join(f"{one.handle} ({one.title})" for one in choices[:5])
        super().__init__(
            f"{text!r} could be any of {len(choices)}: {names}",
            code=type(self).code,
            hint=f"say which one, such as {choices[0].handle}",
        )
        self.text = text
        self.choices = choices


class NotAllowed(UserError):
    """The caller's token does not allow the request."""


class Refused(UserError):
    """The current state does not allow the request."""


class NotTold(Refused):
    """A work source rejected the status of some of its items."""

    code = "not_told"

    def __init__(self, message: str, *, hint: str | None = None, items: tuple[str, ...]) -> None:
        super().__init__(message, code=type(self).code, hint=hint)
        self.items = items


class Held(UserError):
    """Another process holds what was requested."""


class IllegalTransition(LoopwrightError):
    """A state machine has no such transition."""

    code = "illegal_transition"

    def __init__(self, machine: str, subject: str, source: str, target: str) -> None:
        super().__init__(f"{machine} {subject}: {source} -> {target} is not allowed")
        self.machine = machine
        self.subject = subject
        self.source = source
        self.target = target


class FenceLost(LoopwrightError):
    """Another worker took this attempt over."""

    code = "fence_lost"


class LeaseLost(LoopwrightError):
    """This worker's lease lapsed."""

    code = "lease_lost"


class StaleVersion(LoopwrightError):
    """The row changed between reading and writing."""

    code = "stale_version"


class CannotRun(LoopwrightError):
    """A run could not be created."""

    code = "cannot_run"


class Denied(CannotRun):
    """A sandbox denied something that a gate needs."""

    code = "denied"


class NoEnvironment(CannotRun):
    """The environment that a plan was submitted from is incomplete here: a variable or a program is missing."""

    code = "no_environment"


class TookTooMuch(CannotRun):
    """A gate used more disk space than it may."""

    code = "took_too_much"


class BranchRewritten(CannotRun):
    """The plan branch was rewritten outside Loopwright, so that landed work is no longer on it."""

    code = "branch_rewritten"

    def __init__(self, message: str, *, found: str, left: str) -> None:
        super().__init__(message)
        self.found = found
        """The commit that the branch has."""
        self.left = left
        """The commit that Loopwright left there."""


class RepositoryGone(CannotRun):
    """The git repository of the project no longer exists."""

    code = "repository_gone"


class GitFailed(LoopwrightError):
    """A git command failed."""

    code = "git_failed"


class CommitGone(GitFailed):
    """A commit is no longer in the repository."""

    code = "commit_gone"


class Unrecordable(GitFailed):
    """Git cannot record the content of a workspace, however often it is tried."""

    code = "unrecordable"


class MergeConflict(LoopwrightError):
    """Two changes touch the same place."""

    code = "merge_conflict"

    def __init__(self, paths: tuple[str, ...], detail: str = "") -> None:
        super().__init__("conflict in " + ", ".join(paths))
        self.paths = paths
        self.detail = detail


class Busy(LoopwrightError):
    """A service on the network cannot answer now; try again later."""

    code = "busy"

    def __init__(self, message: str, *, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s
        """The shortest wait that the service asks for; None if it names none."""


class MachineTrouble(LoopwrightError):
    """The operating system refused something that Loopwright needs."""

    code = "machine_trouble"
    hint: ClassVar[str] = "run `loopwright doctor`, which checks the disk, the home and the database"

    def __init__(self, told: str) -> None:
        super().__init__(f"{self.what}: {told}" if told else self.what)

    what: ClassVar[str] = "The operating system refused an operation"


class TooManyOpenFiles(MachineTrouble):
    """No more files can be opened: the process or the machine has too many open."""

    code = "too_many_open_files"
    what = "Too many files are open"
    hint = (
        "raise the limit in this shell with `ulimit -n 4096`, or lower `parallel`; then run the command again"
    )


class OutOfMemory(MachineTrouble):
    """There is not enough memory, or no room for another process."""

    code = "out_of_memory"
    what = "There is not enough memory or there are too many processes"
    hint = "end other programs, raise `ulimit -v` and `ulimit -u`, or lower `parallel`; then run the command again"


class DiskFull(MachineTrouble):
    """The disk is full, or the user's quota on it."""

    code = "disk_full"
    what = "The disk is full"
    hint = (
        "free some space; `df -h` shows where; then run the command again, which continues where it stopped"
    )


class NotPermitted(MachineTrouble):
    """A file or folder cannot be read or written: it is read-only, or belongs to another user."""

    code = "not_permitted"
    what = "A file or folder cannot be read or written"
    hint = "make it writable for this user (chown, chmod, remount), or set LOOPWRIGHT_HOME to another folder"


class FileGone(MachineTrouble):
    """A file or folder that existed before is gone."""

    code = "file_gone"
    what = "A file or folder was deleted or moved while Loopwright used it"
    hint = "put it back and run the command again; `loopwright doctor` says what is left of the home"


class UnjudgedTree(LoopwrightError):
    """A gate passes although the project's own modules cannot be loaded: it does not judge the tree."""

    code = "unjudged_tree"

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class StoreUnavailable(LoopwrightError):
    """The database cannot be reached or written."""

    code = "store_unavailable"


class DamagedDatabase(StoreUnavailable):
    """The file of the database is damaged, or is not a database."""

    code = "damaged_database"

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class DatabaseGone(StoreUnavailable):
    """The file of the database was deleted or moved while Loopwright used it."""

    code = "database_gone"
    hint: ClassVar[str] = "put it back; `loopwright doctor` says what is left of the home"

    def __init__(self, database: str) -> None:
        super().__init__(f"The database {database} was deleted or moved while Loopwright used it.")


class DatabaseReplaced(StoreUnavailable):
    """The path of the database now has a different file."""

    code = "database_replaced"
    hint: ClassVar[str] = "run the command again to use the new file; put the old one back to use that"

    def __init__(self, database: str) -> None:
        super().__init__(f"The database {database} was replaced by another file while Loopwright used it.")


class DamagedRow(LoopwrightError):
    """Something in the database is not what Loopwright wrote there."""

    code = "damaged_row"
    hint: ClassVar[str] = "`loopwright doctor` looks at the database and names the last backup"


class NewerDatabase(LoopwrightError):
    """The database was written by a newer Loopwright; this version does not touch it."""

    code = "newer_database"


def disk_is_full(error: BaseException) -> bool:
    """Return whether a full disk or disk quota caused an error of the system or of git."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return any(words in str(error) for words in ("No space left on device", "Disk quota exceeded"))
