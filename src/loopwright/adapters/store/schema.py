"""The tables of a home, once for both databases. Column names are the field names of `core.rows.model`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.types import TypeEngine

from loopwright.adapters.store.chain import moment_text
from loopwright.adapters.store.tables import EVENTS, NAMES, UNIQUE, name_of

metadata: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Moment(TypeDecorator[datetime]):
    """An aware UTC moment: `timestamptz` in PostgreSQL, text of fixed width in SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose the column type."""
        return dialect.type_descriptor(String(27) if dialect.name == "sqlite" else DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """Turn a moment into what the driver takes."""
        return moment_text(value) if value is not None and dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, _dialect: Dialect) -> datetime | None:
        """Turn what the driver gives into an aware UTC moment."""
        if value is None:
            return None
        return datetime.fromisoformat(value) if isinstance(value, str) else value.astimezone(UTC)


# Byte order everywhere: a PostgreSQL database with a language's collation would sort ids and keys differently.
TEXT: Final = Text().with_variant(Text(collation="C"), "postgresql")
INTEGER: Final = BigInteger()
BOOLEAN: Final = Boolean()
JSON: Final = Text()
MOMENT: Final = Moment()


def _id() -> Column[Any]:
    return Column("id", TEXT, primary_key=True)


def _text(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, TEXT, nullable=null)


def _integer(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, INTEGER, nullable=null)


def _boolean(name: str) -> Column[Any]:
    return Column(name, BOOLEAN, nullable=False)


def _json(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, JSON, nullable=null)


def _moment(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, MOMENT, nullable=null)


def _owner(name: str, table: str, *, null: bool = False) -> Column[Any]:
    # Checked at commit, so that rows of one transaction may come in any order.
    key = ForeignKey(f"{table}.id", deferrable=True, initially="DEFERRED")
    return Column(name, TEXT, key, nullable=null)


def _unique(table: str) -> Index:
    return Index(None, *UNIQUE[table], unique=True)


projects: Final = Table(
    "projects",
    metadata,
    _id(),
    _text("name"),
    _text("path"),
    _text("subfolder"),
    _text("spent_on"),
    _integer("spent_micros"),
    _integer("unknown_costs"),
    _moment("created_at"),
)

loops: Final = Table(
    "loops",
    metadata,
    _id(),
    _owner("project_id", "projects"),
    _text("name"),
    _text("source_kind"),
    _text("source_path"),
    _text("state"),
    _text("plan_id", null=True),
    _integer("priority"),
    _text("reason"),
    _moment("resume_at", null=True),
    _moment("created_at"),
    _moment("updated_at"),
    _unique("loops"),
    Index(None, "state"),
)

plans: Final = Table(
    "plans",
    metadata,
    _id(),
    _owner("project_id", "projects"),
    _owner("loop_id", "loops"),
    _text("title"),
    _text("status"),
    _text("source_sha256"),
    _text("base_ref"),
    _text("base_sha"),
    _text("branch"),
    _json("policy"),
    _json("gates"),
    _json("books"),
    _text("context"),
    _json("doc_sync"),
    _json("evaluation"),
    _json("environment", null=True),
    _integer("open_tasks"),
    _integer("failed_tasks"),
    _integer("fix_cycles"),
    _integer("verify_n"),
    _integer("verify_leg"),
    _integer("verify_fence"),
    _text("verify_worker_id", null=True),
    _text("verify_run_id", null=True),
    _integer("call_failures"),
    _moment("not_before", null=True),
    _moment("branch_moved_at", null=True),
    _integer("spent_micros"),
    _integer("unknown_costs"),
    _json("verdict", null=True),
    _text("result_sha", null=True),
    _text("outcome", null=True),
    _text("reason"),
    _moment("created_at"),
    _moment("updated_at"),
    _moment("executed_at", null=True),
    _moment("completed_at", null=True),
    _moment("verified_at", null=True),
    Index(None, "status"),
    Index(None, "project_id", "status"),
    Index(None, "loop_id"),
)

tasks: Final = Table(
    "tasks",
    metadata,
    _id(),
    _owner("plan_id", "plans"),
    _text("key"),
    _text("title"),
    _text("description"),
    _json("criteria"),
    _json("acceptance"),
    _json("held_out"),
    _json("depends_on"),
    _json("dependents"),
    _json("scope"),
    _json("approved"),
    _json("touched"),
    _integer("priority"),
    _integer("position"),
    _text("phase"),
    _text("type"),
    _text("complexity"),
    _boolean("prove"),
    _text("status"),
    _text("origin"),
    _integer("unmet"),
    _integer("attempts"),
    _integer("call_failures"),
    _integer("races"),
    _integer("passed_over"),
    _integer("max_attempts"),
    _text("agent", null=True),
    _text("model", null=True),
    _text("note"),
    _moment("not_before", null=True),
    _text("attempt_id", null=True),
    _text("first_base_sha", null=True),
    _text("failure", null=True),
    _text("failure_mark"),
    _text("reason"),
    _text("outcome", null=True),
    _text("landed_sha", null=True),
    _text("taken_by"),
    _text("taken_dir"),
    _text("reviewed_by"),
    _moment("created_at"),
    _moment("updated_at"),
    _moment("completed_at", null=True),
    Index(None, "plan_id", "status", "unmet", "priority", "position"),
    Index(None, "plan_id", "key"),
)

attempts: Final = Table(
    "attempts",
    metadata,
    _id(),
    _owner("plan_id", "plans"),
    _owner("task_id", "tasks"),
    _integer("n"),
    _text("state"),
    _integer("fence"),
    _integer("leg"),
    _text("worker_id", null=True),
    _text("host_id", null=True),
    _text("agent"),
    _text("model", null=True),
    _text("note"),
    _text("evidence"),
    _text("base_sha", null=True),
    _text("workspace", null=True),
    _integer("port_base", null=True),
    _text("run_id", null=True),
    _text("tip_sha", null=True),
    _json("touched"),
    _text("agent_sha", null=True),
    _text("candidate_parent", null=True),
    _text("candidate_sha", null=True),
    _text("candidate_tree", null=True),
    _text("books_sha", null=True),
    _text("verdict_id", null=True),
    _json("gate_files", null=True),
    _text("review_id", null=True),
    _integer("fix_turns"),
    _json("qa", null=True),
    _text("failure", null=True),
    _text("detail"),
    _moment("wake_at", null=True),
    _text("wait_reason"),
    _json("questions"),
    _text("account", null=True),
    _text("envelope_id", null=True),
    _text("stands_in"),
    _text("interrupt"),
    _moment("cleaned_at", null=True),
    _moment("created_at"),
    _moment("updated_at"),
    _moment("ended_at", null=True),
    _unique("attempts"),
    Index(None, "plan_id", "state"),
    Index(None, "state"),
    Index(None, "cleaned_at", "state"),
)

runs: Final = Table(
    "runs",
    metadata,
    _id(),
    _owner("plan_id", "plans"),
    _text("task_id", null=True),
    _text("attempt_id", null=True),
    _text("role"),
    _text("state"),
    _text("label"),
    _text("agent", null=True),
    _text("account", null=True),
    _text("model", null=True),
    _text("agent_version", null=True),
    _text("permission_mode", null=True),
    _json("permissions", null=True),
    _text("sandbox", null=True),
    _json("sandbox_made_with", null=True),
    _json("argv"),
    _text("prompt_sha256", null=True),
    _json("template", null=True),
    _text("host_id", null=True),
    _text("boot_id", null=True),
    _text("session_ref", null=True),
    _integer("exit_code", null=True),
    _text("ended_by"),
    _text("summary"),
    _text("failure", null=True),
    _moment("retry_at", null=True),
    _json("usage", null=True),
    _integer("cost_micros", null=True),
    _boolean("cost_estimated"),
    _integer("max_cost_micros", null=True),
    _text("output_sha256", null=True),
    _integer("output_bytes", null=True),
    _text("files_sha256"),
    _text("reused_run_id", null=True),
    _json("verdict", null=True),
    _moment("created_at"),
    _moment("started_at", null=True),
    _moment("ended_at", null=True),
    Index(None, "attempt_id"),
    Index(None, "plan_id"),
    Index(None, "task_id"),
    Index(None, "state"),
)

verdicts: Final = Table(
    "verdicts",
    metadata,
    _id(),
    _owner("plan_id", "plans"),
    _text("tree"),
    _text("gate_key"),
    _text("run_id"),
    _json("verdict"),
    _moment("created_at"),
    Index(None, "plan_id", "tree", "gate_key"),
)

reviews: Final = Table(
    "reviews",
    metadata,
    _id(),
    _owner("plan_id", "plans"),
    _owner("task_id", "tasks"),
    _text("attempt_id"),
    _integer("n"),
    _text("state"),
    _text("run_id"),
    _text("agent"),
    _text("model", null=True),
    _text("parent_sha"),
    _text("candidate_sha"),
    _text("patch_sha256"),
    _boolean("shown_whole"),
    _json("reasons"),
    _json("contradicted"),
    _integer("tries"),
    _text("problem"),
    _text("summary"),
    _json("findings"),
    _moment("created_at"),
    _moment("ended_at", null=True),
    Index(None, "plan_id"),
    Index(None, "task_id", "patch_sha256"),
    Index(None, "attempt_id"),
)

commands: Final = Table(
    "commands",
    metadata,
    _id(),
    _text("actor"),
    _text("verb"),
    _text("target"),
    _json("arguments"),
    _text("state"),
    _text("result"),
    _text("commit_sha", null=True),
    _moment("created_at"),
    _moment("applied_at", null=True),
    Index(None, "state"),
)

questions: Final = Table(
    "questions",
    metadata,
    _id(),
    _owner("project_id", "projects"),
    _owner("loop_id", "loops"),
    _owner("plan_id", "plans"),
    _text("task_id"),
    _text("run_id"),
    _text("kind"),
    _text("key"),
    _text("text"),
    _json("options"),
    _text("default", null=True),
    _json("asked_by"),
    _text("state"),
    _text("answer", null=True),
    _text("holds_for"),
    _text("answered_by"),
    _moment("deadline", null=True),
    _moment("created_at"),
    _moment("answered_at", null=True),
    Index(None, "project_id", "kind", "state"),
    Index(None, "state"),
    Index(None, "plan_id"),
)

discoveries: Final = Table(
    "discoveries",
    metadata,
    _id(),
    _owner("project_id", "projects"),
    _owner("plan_id", "plans"),
    _text("task_id"),
    _text("attempt_id"),
    _text("title"),
    _text("reason"),
    _text("recommendation"),
    _text("state"),
    _text("became"),
    _text("decided_by"),
    _moment("created_at"),
    _moment("decided_at", null=True),
    Index(None, "project_id", "state"),
    Index(None, "plan_id"),
)

finishes: Final = Table(
    "finishes",
    metadata,
    _id(),
    _owner("plan_id", "plans"),
    _text("how"),
    _text("state"),
    _text("actor"),
    _json("tasks"),
    _integer("leg"),
    _integer("fence"),
    _text("source_sha", null=True),
    _text("target_sha", null=True),
    _text("commit_sha", null=True),
    _text("tree", null=True),
    _text("verdict_id", null=True),
    _text("receipt"),
    _text("receipt_sha256", null=True),
    _boolean("signed"),
    _text("request_url", null=True),
    _integer("request_n", null=True),
    _text("detail"),
    _integer("call_failures"),
    _moment("not_before", null=True),
    _moment("created_at"),
    _moment("updated_at"),
    _moment("finished_at", null=True),
    Index(None, "plan_id"),
    Index(None, "state"),
)

envelopes: Final = Table(
    "envelopes",
    metadata,
    _id(),
    _text("agent"),
    _text("account"),
    _json("models"),
    _text("state"),
    _text("failure", null=True),
    _text("reason"),
    _moment("until", null=True),
    _moment("closed_at", null=True),
    _integer("closings"),
    _text("probe", null=True),
    _moment("probed_at", null=True),
    _json("windows"),
    _integer("runs"),
    _text("last_run_id", null=True),
    _moment("created_at"),
    _moment("updated_at"),
)

workers: Final = Table(
    "workers",
    metadata,
    _id(),
    _text("host_id"),
    _text("boot_id"),
    _integer("pid"),
    _text("hostname"),
    _integer("slots"),
    _text("version"),
    _moment("started_at"),
    _moment("lease_until"),
    _boolean("controls"),
    _text("project_id", null=True),
)

source_marks: Final = Table("source_marks", metadata, _id(), _json("marks"))

source_debts: Final = Table(
    "source_debts",
    metadata,
    _id(),
    _json("items"),
    _text("reason"),
    _boolean("gone"),
    _moment("asked_at", null=True),
    _moment("created_at"),
)

cursors: Final = Table("cursors", metadata, _id(), _integer("n"))

events: Final = Table(
    EVENTS,
    metadata,
    Column("n", INTEGER, primary_key=True, autoincrement=False),
    _text("id"),
    _text("project", null=True),
    _text("loop", null=True),
    _text("plan", null=True),
    _text("task", null=True),
    _text("attempt", null=True),
    _text("run", null=True),
    _text("type"),
    _integer("version"),
    _moment("at"),
    _text("actor"),
    _text("importance"),
    _json("payload"),
    _text("prev_hash"),
    _text("hash"),
    Index(None, "plan", "n"),
    Index(None, "task", "n"),
    Index(None, "run", "n"),
)

counters: Final = Table("counters", metadata, _id(), _integer("n"))
"""One row, `events`: the number of the last event. Whoever writes holds it, so numbers commit in order."""

chains: Final = Table("chains", metadata, _id(), _text("hash"))
"""The last hash of each plan's chain of events."""

TABLES: Final[Mapping[type[Any], Table]] = MappingProxyType(
    {kind: metadata.tables[name] for kind, name in NAMES.items()}
)


def table_of(kind: type[Any]) -> Table:
    """Return the table of a row type; anything else is a defect."""
    return metadata.tables[name_of(kind)]
