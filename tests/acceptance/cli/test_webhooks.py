"""`webhooks`: make, list, replay and remove receivers of events."""

import json

from tests.acceptance.sandbox import Sandbox


def test_a_webhook_is_made_listed_replayed_and_removed(sandbox: Sandbox) -> None:
    refused = sandbox("webhooks", "create", "http://127.0.0.1:9/")
    assert (refused.code, "webhook_networks" in refused.err) == (2, True)
    sandbox.program.env["LOOPWRIGHT_WEBHOOK_NETWORKS"] = "127.0.0.0/8"
    made = json.loads(
        sandbox("webhooks", "create", "http://127.0.0.1:9/", "--type", "plan_failed", "--json").out
    )
    assert made["secret"].startswith("whsec_")
    listed = sandbox("webhooks", "--json").out
    assert made["secret"] not in listed
    assert json.loads(listed)["webhooks"][0]["types"] == ["plan_failed"]
    shown = sandbox("webhooks").out
    assert (made["id"] in shown, "plan_failed" in shown) == (True, True)
    plain = sandbox("webhooks", "create", "http://127.0.0.1:9/")
    assert [one.partition("_")[0] for one in plain.out.split()] == ["hook", "whsec"]
    assert "loopwright up" in plain.err
    assert sandbox("webhooks", "remove", plain.out.split()[0]).code == 0
    assert json.loads(sandbox("webhooks", "dead", made["id"], "--json").out) == {"dead_letters": []}
    assert sandbox("webhooks", "replay", made["id"]).code == 0
    assert sandbox("webhooks", "remove", made["id"], fresh=True).code == 0
    assert sandbox("webhooks", "remove", made["id"]).code == 2
    assert "there are no webhooks" in sandbox("webhooks").out
