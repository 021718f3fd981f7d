"""The JSON Schemas of the work sources, by the names that they are published under."""

from typing import Any

from loopwright.adapters.sources.beads.beads import ISSUE
from loopwright.adapters.sources.feature_list.feature_schema import FEATURE_LIST
from loopwright.adapters.sources.orchestrator.roadmap_schema import ROADMAP_VIEW, STATE
from loopwright.adapters.sources.plan_md.plan_md_schema import TRACK
from loopwright.adapters.sources.spec.loop_template import TEMPLATE
from loopwright.adapters.sources.spec.plan_format import plan_schema
from loopwright.adapters.sources.spec.planner_answer import planner_schema
from loopwright.adapters.sources.test_state.test_state_schema import CONFIG, HEALTH, TEST_STATE
from loopwright.config.publish import SCHEMA_DIALECT
from loopwright.core.orchestrator.records import record_schemas


def source_schemas() -> dict[str, dict[str, Any]]:
    """Return the schema of each file that a work source is made of."""
    return {
        "plan": plan_schema(),
        "template": dict(TEMPLATE),
        "planner": {"$schema": SCHEMA_DIALECT, **planner_schema()},
        "beads": ISSUE,
        "feature_list": FEATURE_LIST,
        "orchestrator_state": STATE,
        "roadmap_view": ROADMAP_VIEW,
        **record_schemas(),
        "test_state": TEST_STATE,
        "test_state_config": CONFIG,
        "test_state_health": HEALTH,
        "track": TRACK,
    }
