"""The type of every row of a home."""

from typing import Final, get_args

from loopwright.core.replies.discoveries import Discovery
from loopwright.core.rows.access_rows import Charge, KeptReply, Token
from loopwright.core.rows.action_rows import Action
from loopwright.core.rows.alert_rows import Acknowledgement
from loopwright.core.rows.healing_rows import AttemptFailure, Healing
from loopwright.core.rows.hold_rows import Hold
from loopwright.core.rows.lesson_rows import Lesson, LessonUse
from loopwright.core.rows.model import (
    Attempt,
    Command,
    Cursor,
    Finish,
    Loop,
    Plan,
    Project,
    Review,
    Run,
    Task,
    VerdictRecord,
    Worker,
)
from loopwright.core.rows.monitor_rows import Trouble, Watched
from loopwright.core.rows.source_rows import SourceDebt, SourceMarks
from loopwright.core.rows.waiting_rows import Envelope, Question
from loopwright.core.rows.webhook_rows import DeadLetter, Webhook

Row = (
    Project
    | Loop
    | Plan
    | Task
    | Attempt
    | Run
    | VerdictRecord
    | Review
    | Command
    | Question
    | Discovery
    | Finish
    | Envelope
    | Worker
    | SourceMarks
    | SourceDebt
    | Cursor
    | Token
    | Charge
    | KeptReply
    | AttemptFailure
    | Healing
    | Webhook
    | DeadLetter
    | Acknowledgement
    | Watched
    | Trouble
    | Lesson
    | LessonUse
    | Hold
    | Action
)
ROW_TYPES: Final = get_args(Row)
"""The type of every row: each has its own table, with its fields as columns."""
