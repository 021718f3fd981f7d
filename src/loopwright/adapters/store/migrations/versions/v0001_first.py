"""The first schema."""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import MOMENT, TEXT

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Bring the tables to this revision."""
    op.create_table(
        "chains",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("hash", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chains")),
    )
    op.create_table(
        "commands",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("actor", TEXT, nullable=False),
        sa.Column("verb", TEXT, nullable=False),
        sa.Column("target", TEXT, nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("result", TEXT, nullable=False),
        sa.Column("commit_sha", TEXT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("applied_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_commands")),
    )
    op.create_index(op.f("ix_commands_state"), "commands", ["state"], unique=False)
    op.create_table(
        "counters",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_counters")),
    )
    op.create_table(
        "source_marks",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("marks", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_source_marks")),
    )
    op.create_table(
        "source_debts",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("items", sa.Text(), nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("gone", sa.Boolean(), nullable=False),
        sa.Column("asked_at", MOMENT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_source_debts")),
    )
    op.create_table(
        "cursors",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cursors")),
    )
    op.create_table(
        "envelopes",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("account", TEXT, nullable=False),
        sa.Column("models", sa.Text(), nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("failure", TEXT, nullable=True),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("until", MOMENT, nullable=True),
        sa.Column("closed_at", MOMENT, nullable=True),
        sa.Column("closings", sa.BigInteger(), nullable=False),
        sa.Column("probe", TEXT, nullable=True),
        sa.Column("probed_at", MOMENT, nullable=True),
        sa.Column("windows", sa.Text(), nullable=False),
        sa.Column("runs", sa.BigInteger(), nullable=False),
        sa.Column("last_run_id", TEXT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_envelopes")),
    )
    op.create_table(
        "events",
        sa.Column("n", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("project", TEXT, nullable=True),
        sa.Column("loop", TEXT, nullable=True),
        sa.Column("plan", TEXT, nullable=True),
        sa.Column("task", TEXT, nullable=True),
        sa.Column("attempt", TEXT, nullable=True),
        sa.Column("run", TEXT, nullable=True),
        sa.Column("type", TEXT, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("actor", TEXT, nullable=False),
        sa.Column("importance", TEXT, nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("prev_hash", TEXT, nullable=False),
        sa.Column("hash", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("n", name=op.f("pk_events")),
    )
    op.create_index(op.f("ix_events_plan_n"), "events", ["plan", "n"], unique=False)
    op.create_index(op.f("ix_events_run_n"), "events", ["run", "n"], unique=False)
    op.create_index(op.f("ix_events_task_n"), "events", ["task", "n"], unique=False)
    op.create_table(
        "projects",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("path", TEXT, nullable=False),
        sa.Column("subfolder", TEXT, nullable=False),
        sa.Column("spent_on", TEXT, nullable=False),
        sa.Column("spent_micros", sa.BigInteger(), nullable=False),
        sa.Column("unknown_costs", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
    )
    op.create_table(
        "workers",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("host_id", TEXT, nullable=False),
        sa.Column("boot_id", TEXT, nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("hostname", TEXT, nullable=False),
        sa.Column("slots", sa.BigInteger(), nullable=False),
        sa.Column("version", TEXT, nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("lease_until", MOMENT, nullable=False),
        sa.Column("controls", sa.Boolean(), nullable=False),
        sa.Column("project_id", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
    )
    op.create_table(
        "loops",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("project_id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("source_kind", TEXT, nullable=False),
        sa.Column("source_path", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("plan_id", TEXT, nullable=True),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("resume_at", MOMENT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_loops_project_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_loops")),
    )
    op.create_index(
        op.f("ix_loops_project_id_source_path"), "loops", ["project_id", "source_path"], unique=True
    )
    op.create_index(op.f("ix_loops_state"), "loops", ["state"], unique=False)
    op.create_table(
        "plans",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("project_id", TEXT, nullable=False),
        sa.Column("loop_id", TEXT, nullable=False),
        sa.Column("title", TEXT, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("source_sha256", TEXT, nullable=False),
        sa.Column("base_ref", TEXT, nullable=False),
        sa.Column("base_sha", TEXT, nullable=False),
        sa.Column("branch", TEXT, nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("gates", sa.Text(), nullable=False),
        sa.Column("books", sa.Text(), nullable=False),
        sa.Column("context", TEXT, nullable=False),
        sa.Column("doc_sync", sa.Text(), nullable=False),
        sa.Column("evaluation", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=True),
        sa.Column("open_tasks", sa.BigInteger(), nullable=False),
        sa.Column("failed_tasks", sa.BigInteger(), nullable=False),
        sa.Column("fix_cycles", sa.BigInteger(), nullable=False),
        sa.Column("verify_n", sa.BigInteger(), nullable=False),
        sa.Column("verify_leg", sa.BigInteger(), nullable=False),
        sa.Column("verify_fence", sa.BigInteger(), nullable=False),
        sa.Column("verify_worker_id", TEXT, nullable=True),
        sa.Column("verify_run_id", TEXT, nullable=True),
        sa.Column("call_failures", sa.BigInteger(), nullable=False),
        sa.Column("not_before", MOMENT, nullable=True),
        sa.Column("branch_moved_at", MOMENT, nullable=True),
        sa.Column("spent_micros", sa.BigInteger(), nullable=False),
        sa.Column("unknown_costs", sa.BigInteger(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("result_sha", TEXT, nullable=True),
        sa.Column("outcome", TEXT, nullable=True),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("executed_at", MOMENT, nullable=True),
        sa.Column("completed_at", MOMENT, nullable=True),
        sa.Column("verified_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["loop_id"], ["loops.id"], name=op.f("fk_plans_loop_id"), initially="DEFERRED", deferrable=True
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_plans_project_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_plans")),
    )
    op.create_index(op.f("ix_plans_loop_id"), "plans", ["loop_id"], unique=False)
    op.create_index(op.f("ix_plans_project_id_status"), "plans", ["project_id", "status"], unique=False)
    op.create_index(op.f("ix_plans_status"), "plans", ["status"], unique=False)
    op.create_table(
        "discoveries",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("project_id", TEXT, nullable=False),
        sa.Column("plan_id", TEXT, nullable=False),
        sa.Column("task_id", TEXT, nullable=False),
        sa.Column("attempt_id", TEXT, nullable=False),
        sa.Column("title", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("recommendation", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("became", TEXT, nullable=False),
        sa.Column("decided_by", TEXT, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("decided_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["plan_id"],
            ["plans.id"],
            name=op.f("fk_discoveries_plan_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_discoveries_project_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_discoveries")),
    )
    op.create_index(op.f("ix_discoveries_plan_id"), "discoveries", ["plan_id"], unique=False)
    op.create_index(
        op.f("ix_discoveries_project_id_state"), "discoveries", ["project_id", "state"], unique=False
    )
    op.create_table(
        "finishes",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("plan_id", TEXT, nullable=False),
        sa.Column("how", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("actor", TEXT, nullable=False),
        sa.Column("tasks", sa.Text(), nullable=False),
        sa.Column("leg", sa.BigInteger(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("source_sha", TEXT, nullable=True),
        sa.Column("target_sha", TEXT, nullable=True),
        sa.Column("commit_sha", TEXT, nullable=True),
        sa.Column("tree", TEXT, nullable=True),
        sa.Column("verdict_id", TEXT, nullable=True),
        sa.Column("receipt", TEXT, nullable=False),
        sa.Column("receipt_sha256", TEXT, nullable=True),
        sa.Column("signed", sa.Boolean(), nullable=False),
        sa.Column("request_url", TEXT, nullable=True),
        sa.Column("request_n", sa.BigInteger(), nullable=True),
        sa.Column("detail", TEXT, nullable=False),
        sa.Column("call_failures", sa.BigInteger(), nullable=False),
        sa.Column("not_before", MOMENT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["plan_id"], ["plans.id"], name=op.f("fk_finishes_plan_id"), initially="DEFERRED", deferrable=True
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_finishes")),
    )
    op.create_index(op.f("ix_finishes_plan_id"), "finishes", ["plan_id"], unique=False)
    op.create_index(op.f("ix_finishes_state"), "finishes", ["state"], unique=False)
    op.create_table(
        "questions",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("project_id", TEXT, nullable=False),
        sa.Column("loop_id", TEXT, nullable=False),
        sa.Column("plan_id", TEXT, nullable=False),
        sa.Column("task_id", TEXT, nullable=False),
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("default", TEXT, nullable=True),
        sa.Column("asked_by", sa.Text(), nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("answer", TEXT, nullable=True),
        sa.Column("holds_for", TEXT, nullable=False),
        sa.Column("answered_by", TEXT, nullable=False),
        sa.Column("deadline", MOMENT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("answered_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["loop_id"],
            ["loops.id"],
            name=op.f("fk_questions_loop_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["plan_id"],
            ["plans.id"],
            name=op.f("fk_questions_plan_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_questions_project_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_questions")),
    )
    op.create_index(op.f("ix_questions_plan_id"), "questions", ["plan_id"], unique=False)
    op.create_index(
        op.f("ix_questions_project_id_kind_state"), "questions", ["project_id", "kind", "state"], unique=False
    )
    op.create_index(op.f("ix_questions_state"), "questions", ["state"], unique=False)
    op.create_table(
        "runs",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("plan_id", TEXT, nullable=False),
        sa.Column("task_id", TEXT, nullable=True),
        sa.Column("attempt_id", TEXT, nullable=True),
        sa.Column("role", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("label", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=True),
        sa.Column("account", TEXT, nullable=True),
        sa.Column("model", TEXT, nullable=True),
        sa.Column("agent_version", TEXT, nullable=True),
        sa.Column("permission_mode", TEXT, nullable=True),
        sa.Column("permissions", sa.Text(), nullable=True),
        sa.Column("sandbox", TEXT, nullable=True),
        sa.Column("sandbox_made_with", sa.Text(), nullable=True),
        sa.Column("argv", sa.Text(), nullable=False),
        sa.Column("prompt_sha256", TEXT, nullable=True),
        sa.Column("template", sa.Text(), nullable=True),
        sa.Column("host_id", TEXT, nullable=True),
        sa.Column("boot_id", TEXT, nullable=True),
        sa.Column("session_ref", TEXT, nullable=True),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        sa.Column("ended_by", TEXT, nullable=False),
        sa.Column("summary", TEXT, nullable=False),
        sa.Column("failure", TEXT, nullable=True),
        sa.Column("retry_at", MOMENT, nullable=True),
        sa.Column("usage", sa.Text(), nullable=True),
        sa.Column("cost_micros", sa.BigInteger(), nullable=True),
        sa.Column("cost_estimated", sa.Boolean(), nullable=False),
        sa.Column("max_cost_micros", sa.BigInteger(), nullable=True),
        sa.Column("output_sha256", TEXT, nullable=True),
        sa.Column("output_bytes", sa.BigInteger(), nullable=True),
        sa.Column("files_sha256", TEXT, nullable=False),
        sa.Column("reused_run_id", TEXT, nullable=True),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT, nullable=True),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["plan_id"], ["plans.id"], name=op.f("fk_runs_plan_id"), initially="DEFERRED", deferrable=True
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_index(op.f("ix_runs_attempt_id"), "runs", ["attempt_id"], unique=False)
    op.create_index(op.f("ix_runs_plan_id"), "runs", ["plan_id"], unique=False)
    op.create_index(op.f("ix_runs_state"), "runs", ["state"], unique=False)
    op.create_index(op.f("ix_runs_task_id"), "runs", ["task_id"], unique=False)
    op.create_table(
        "tasks",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("plan_id", TEXT, nullable=False),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("title", TEXT, nullable=False),
        sa.Column("description", TEXT, nullable=False),
        sa.Column("criteria", sa.Text(), nullable=False),
        sa.Column("acceptance", sa.Text(), nullable=False),
        sa.Column("held_out", sa.Text(), nullable=False),
        sa.Column("depends_on", sa.Text(), nullable=False),
        sa.Column("dependents", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("approved", sa.Text(), nullable=False),
        sa.Column("touched", sa.Text(), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("phase", TEXT, nullable=False),
        sa.Column("type", TEXT, nullable=False),
        sa.Column("complexity", TEXT, nullable=False),
        sa.Column("prove", sa.Boolean(), nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("origin", TEXT, nullable=False),
        sa.Column("unmet", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("call_failures", sa.BigInteger(), nullable=False),
        sa.Column("races", sa.BigInteger(), nullable=False),
        sa.Column("passed_over", sa.BigInteger(), nullable=False),
        sa.Column("max_attempts", sa.BigInteger(), nullable=False),
        sa.Column("agent", TEXT, nullable=True),
        sa.Column("model", TEXT, nullable=True),
        sa.Column("note", TEXT, nullable=False),
        sa.Column("not_before", MOMENT, nullable=True),
        sa.Column("attempt_id", TEXT, nullable=True),
        sa.Column("first_base_sha", TEXT, nullable=True),
        sa.Column("failure", TEXT, nullable=True),
        sa.Column("failure_mark", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("outcome", TEXT, nullable=True),
        sa.Column("landed_sha", TEXT, nullable=True),
        sa.Column("taken_by", TEXT, nullable=False),
        sa.Column("taken_dir", TEXT, nullable=False),
        sa.Column("reviewed_by", TEXT, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("completed_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["plan_id"], ["plans.id"], name=op.f("fk_tasks_plan_id"), initially="DEFERRED", deferrable=True
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tasks")),
    )
    op.create_index(op.f("ix_tasks_plan_id_key"), "tasks", ["plan_id", "key"], unique=False)
    op.create_index(
        op.f("ix_tasks_plan_id_status_unmet_priority_position"),
        "tasks",
        ["plan_id", "status", "unmet", "priority", "position"],
        unique=False,
    )
    op.create_table(
        "verdicts",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("plan_id", TEXT, nullable=False),
        sa.Column("tree", TEXT, nullable=False),
        sa.Column("gate_key", TEXT, nullable=False),
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["plan_id"], ["plans.id"], name=op.f("fk_verdicts_plan_id"), initially="DEFERRED", deferrable=True
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_verdicts")),
    )
    op.create_index(
        op.f("ix_verdicts_plan_id_tree_gate_key"), "verdicts", ["plan_id", "tree", "gate_key"], unique=False
    )
    op.create_table(
        "attempts",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("plan_id", TEXT, nullable=False),
        sa.Column("task_id", TEXT, nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("leg", sa.BigInteger(), nullable=False),
        sa.Column("worker_id", TEXT, nullable=True),
        sa.Column("host_id", TEXT, nullable=True),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("model", TEXT, nullable=True),
        sa.Column("note", TEXT, nullable=False),
        sa.Column("evidence", TEXT, nullable=False),
        sa.Column("base_sha", TEXT, nullable=True),
        sa.Column("workspace", TEXT, nullable=True),
        sa.Column("port_base", sa.BigInteger(), nullable=True),
        sa.Column("run_id", TEXT, nullable=True),
        sa.Column("tip_sha", TEXT, nullable=True),
        sa.Column("touched", sa.Text(), nullable=False),
        sa.Column("agent_sha", TEXT, nullable=True),
        sa.Column("candidate_parent", TEXT, nullable=True),
        sa.Column("candidate_sha", TEXT, nullable=True),
        sa.Column("candidate_tree", TEXT, nullable=True),
        sa.Column("books_sha", TEXT, nullable=True),
        sa.Column("verdict_id", TEXT, nullable=True),
        sa.Column("gate_files", sa.Text(), nullable=True),
        sa.Column("review_id", TEXT, nullable=True),
        sa.Column("fix_turns", sa.BigInteger(), nullable=False),
        sa.Column("qa", sa.Text(), nullable=True),
        sa.Column("failure", TEXT, nullable=True),
        sa.Column("detail", TEXT, nullable=False),
        sa.Column("wake_at", MOMENT, nullable=True),
        sa.Column("wait_reason", TEXT, nullable=False),
        sa.Column("questions", sa.Text(), nullable=False),
        sa.Column("account", TEXT, nullable=True),
        sa.Column("envelope_id", TEXT, nullable=True),
        sa.Column("stands_in", TEXT, nullable=False),
        sa.Column("interrupt", TEXT, nullable=False),
        sa.Column("cleaned_at", MOMENT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["plan_id"], ["plans.id"], name=op.f("fk_attempts_plan_id"), initially="DEFERRED", deferrable=True
        ),
        sa.ForeignKeyConstraint(
            ["task_id"], ["tasks.id"], name=op.f("fk_attempts_task_id"), initially="DEFERRED", deferrable=True
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
    )
    op.create_index(op.f("ix_attempts_cleaned_at_state"), "attempts", ["cleaned_at", "state"], unique=False)
    op.create_index(op.f("ix_attempts_plan_id_state"), "attempts", ["plan_id", "state"], unique=False)
    op.create_index(op.f("ix_attempts_state"), "attempts", ["state"], unique=False)
    op.create_index(op.f("ix_attempts_task_id_n"), "attempts", ["task_id", "n"], unique=True)
    op.create_table(
        "reviews",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("plan_id", TEXT, nullable=False),
        sa.Column("task_id", TEXT, nullable=False),
        sa.Column("attempt_id", TEXT, nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("model", TEXT, nullable=True),
        sa.Column("parent_sha", TEXT, nullable=False),
        sa.Column("candidate_sha", TEXT, nullable=False),
        sa.Column("patch_sha256", TEXT, nullable=False),
        sa.Column("shown_whole", sa.Boolean(), nullable=False),
        sa.Column("reasons", sa.Text(), nullable=False),
        sa.Column("contradicted", sa.Text(), nullable=False),
        sa.Column("tries", sa.BigInteger(), nullable=False),
        sa.Column("problem", TEXT, nullable=False),
        sa.Column("summary", TEXT, nullable=False),
        sa.Column("findings", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["plan_id"], ["plans.id"], name=op.f("fk_reviews_plan_id"), initially="DEFERRED", deferrable=True
        ),
        sa.ForeignKeyConstraint(
            ["task_id"], ["tasks.id"], name=op.f("fk_reviews_task_id"), initially="DEFERRED", deferrable=True
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reviews")),
    )
    op.create_index(op.f("ix_reviews_attempt_id"), "reviews", ["attempt_id"], unique=False)
    op.create_index(op.f("ix_reviews_plan_id"), "reviews", ["plan_id"], unique=False)
    op.create_index(
        op.f("ix_reviews_task_id_patch_sha256"), "reviews", ["task_id", "patch_sha256"], unique=False
    )
    op.execute("INSERT INTO counters (id, n) VALUES ('events', 0)")
