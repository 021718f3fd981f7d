"""Keep lessons and what became of the tasks that they were meant for."""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import MOMENT, TEXT

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Bring the tables to this revision."""
    op.create_table(
        "lessons",
        sa.Column("id", TEXT, autoincrement=False, nullable=False),
        sa.Column("project_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("state", TEXT, autoincrement=False, nullable=False),
        sa.Column("text", TEXT, autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("signature", TEXT, autoincrement=False, nullable=False),
        sa.Column("files", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("task_type", TEXT, autoincrement=False, nullable=False),
        sa.Column("evidence", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("proposed_by", TEXT, autoincrement=False, nullable=False),
        sa.Column("decided_by", TEXT, autoincrement=False, nullable=False),
        sa.Column("reason", TEXT, autoincrement=False, nullable=False),
        sa.Column("created_at", MOMENT, autoincrement=False, nullable=False),
        sa.Column("tried_since", MOMENT, autoincrement=False, nullable=True),
        sa.Column("expires_at", MOMENT, autoincrement=False, nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_lessons_project_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lessons")),
    )
    with op.batch_alter_table("lessons", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_lessons_project_id_state"), ["project_id", "state"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_lessons_state"), ["state"], unique=False)

    op.create_table(
        "lesson_uses",
        sa.Column("id", TEXT, autoincrement=False, nullable=False),
        sa.Column("lesson_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("project_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("plan_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("task_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("attempt_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("given", sa.Boolean(), autoincrement=False, nullable=False),
        sa.Column("passed", sa.Boolean(), autoincrement=False, nullable=True),
        sa.Column("created_at", MOMENT, autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(
            ["plan_id"],
            ["plans.id"],
            name=op.f("fk_lesson_uses_plan_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_lesson_uses_project_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lesson_uses")),
    )
    with op.batch_alter_table("lesson_uses", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_lesson_uses_attempt_id"), ["attempt_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_lesson_uses_lesson_id"), ["lesson_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_lesson_uses_lesson_id_version_task_id"),
            ["lesson_id", "version", "task_id"],
            unique=True,
        )
