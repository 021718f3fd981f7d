"""The tools over streamable HTTP: the token of each request decides, as everywhere."""

import json
from typing import Any

import httpx
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.integration.server.api import Api

from loopwright.core.values.access import Scope


async def _call(api: Api, token: str, name: str, /, **arguments: Any) -> str:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{api.url}/mcp", http_client=http)) as client,
    ):
        assert len((await client.list_tools()).tools) == 12
        result = await client.call_tool(name, arguments)
    return "".join(block.text for block in result.content if block.type == "text")


async def test_tools_over_http_use_the_token_of_the_request(api: Api) -> None:
    mine, other = api.family()[0], api.family(name="other", path="/elsewhere")[0]
    token = api.make_token("mine", scope=Scope.READ, projects=(mine.id,))
    for used, wanted in ((token, {mine.id}), (api.token, {mine.id, other.id})):
        listed = json.loads(await _call(api, used, "list", what="projects"))["projects"]
        assert {one["id"] for one in listed} == wanted
    said = await _call(api, token, "create", project=mine.id, template="any", reason="r")
    assert "scope_missing" in said


def test_tools_over_http_need_a_token(api: Api) -> None:
    refused = httpx.post(
        f"{api.url}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, timeout=60
    )
    assert (refused.status_code, refused.json()["code"]) == (401, "token_missing")
