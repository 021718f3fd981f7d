"""Small clients of the four protocols, written from their documentation and not from the server."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.request import Request, urlopen

Json = dict[str, Any]

RESULTS = 2
"""An entry of a conversation: so many results of tool calls that the model made at once."""


@dataclass
class Said:
    """What came back, in the same words for every protocol."""

    text: str = ""
    tools: list[tuple[str, Any]] = field(default_factory=list)
    stop: str | None = None
    usage: tuple[int, int, int] | None = None
    """All input, the part of it that came from a cache, output."""


def post(url: str, body: Json) -> str:
    request = Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urlopen(request, timeout=10) as response:
        return response.read().decode()


def events(stream: str) -> Iterator[tuple[str, str]]:
    """Take a stream of server-sent events apart as the standard says."""
    for block in stream.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        if fields:
            yield fields.get("event", ""), fields["data"]


class Anthropic:
    def url(self, server: str, *, stream: bool) -> str:
        return f"{server}/v1/messages?beta=true"

    def body(self, conversation: Sequence[str | int], *, stream: bool, tools: bool) -> Json:
        messages: list[Json] = []
        for entry in conversation:
            if isinstance(entry, str):
                messages.append({"role": "user", "content": [{"type": "text", "text": entry}]})
                continue
            uses = [{"type": "tool_use", "id": f"t{n}", "name": "shell", "input": {}} for n in range(entry)]
            results = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": "ok"} for n in range(entry)]
            messages += [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]
        offered = {"tools": [{"name": "shell", "input_schema": {}}]} if tools else {}
        return {"model": "m-1", "messages": messages, "stream": stream, "max_tokens": 10, **offered}

    def plain(self, answer: Json) -> Said:
        said = Said(stop=answer["stop_reason"])
        for block in answer["content"]:
            if block["type"] == "text":
                said.text += block["text"]
            else:
                said.tools.append((block["name"], block["input"]))
        usage = answer["usage"]
        cached = usage["cache_read_input_tokens"]
        given = usage["input_tokens"] + usage["cache_creation_input_tokens"] + cached
        said.usage = (given, cached, usage["output_tokens"])
        return said

    def streamed(self, stream: str) -> Said:
        answer: Json = {}
        parts: dict[int, str] = {}
        for name, data in events(stream):
            event = json.loads(data)
            assert event["type"] == name
            match event:
                case {"type": "message_start", "message": message}:
                    answer = message
                case {"type": "content_block_start", "index": index, "content_block": block}:
                    assert index == len(answer["content"])
                    answer["content"].append(block)
                    parts[index] = ""
                case {"type": "content_block_delta", "index": index, "delta": delta}:
                    parts[index] += delta.get("text") or delta["partial_json"]
                case {"type": "message_delta", "delta": delta, "usage": usage}:
                    answer |= delta
                    answer["usage"] |= usage
        assert name == "message_stop"
        for index, block in enumerate(answer["content"]):
            block |= (
                {"text": parts[index]} if block["type"] == "text" else {"input": json.loads(parts[index])}
            )
        return self.plain(answer)


class Responses:
    def url(self, server: str, *, stream: bool) -> str:
        return f"{server}/v1/responses"

    def body(self, conversation: Sequence[str | int], *, stream: bool, tools: bool) -> Json:
        items: list[Json] = []
        for entry in conversation:
            if isinstance(entry, str):
                part = {"type": "input_text", "text": entry}
                items.append({"type": "message", "role": "user", "content": [part]})
                continue
            ids = [f"c{n}" for n in range(entry)]
            items += [
                {"type": "function_call", "call_id": one, "name": "shell", "arguments": "{}"} for one in ids
            ]
            items += [{"type": "function_call_output", "call_id": one, "output": "ok"} for one in ids]
        offered = {"tools": [{"type": "function", "name": "shell"}]} if tools else {}
        return {"model": "m-1", "input": items, "stream": stream, **offered}

    def plain(self, answer: Json) -> Said:
        said = Said(stop=(answer["incomplete_details"] or {}).get("reason", answer["status"]))
        for item in answer["output"]:
            match item:
                case {"type": "message", "content": [{"type": "output_text", "text": text}]}:
                    said.text += text
                case {"type": "message", "content": [{"type": "refusal", "refusal": text}]}:
                    said.text, said.stop = said.text + text, "refusal"
                case {"type": "function_call", "name": name, "arguments": arguments}:
                    place = f"{item['namespace']}/" if "namespace" in item else ""
                    said.tools.append((place + name, json.loads(arguments)))
                case {"type": "custom_tool_call", "name": name, "input": text}:
                    said.tools.append((name, text))
                case _:
                    raise AssertionError(item)
        usage = answer["usage"]
        cached = usage["input_tokens_details"]["cached_tokens"]
        said.usage = (usage["input_tokens"], cached, usage["output_tokens"])
        return said

    def streamed(self, stream: str) -> Said:
        numbers, kinds, answer = [], [], {}
        done: list[Json] = []
        given: dict[str, str] = {}
        for name, data in events(stream):
            event = json.loads(data)
            assert event["type"] == name
            numbers.append(event["sequence_number"])
            kinds.append(name)
            if name.endswith(".delta"):
                given[event["item_id"]] = given.get(event["item_id"], "") + event["delta"]
            elif name == "response.output_item.done":
                done.append(event["item"])
            elif name in ("response.completed", "response.incomplete"):
                answer = event["response"]
        assert numbers == list(range(len(numbers)))
        assert kinds[0] == "response.created"
        assert done == answer["output"]
        for item in done:
            whole = (
                item.get("arguments") or item.get("input") or self.plain({**answer, "output": [item]}).text
            )
            assert given[item["id"]] == whole
        return self.plain(answer)


class Chat:
    def url(self, server: str, *, stream: bool) -> str:
        return f"{server}/v1/chat/completions"

    def body(self, conversation: Sequence[str | int], *, stream: bool, tools: bool) -> Json:
        messages: list[Json] = [{"role": "system", "content": "be good"}]
        for entry in conversation:
            if isinstance(entry, str):
                messages.append({"role": "user", "content": entry})
                continue
            ids = [f"c{n}" for n in range(entry)]
            calls = [
                {"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids
            ]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            messages += [{"role": "tool", "tool_call_id": one, "content": "ok"} for one in ids]
        offered = {"tools": [{"type": "function", "function": {"name": "f"}}]} if tools else {}
        return {"model": "m-1", "messages": messages, "stream": stream, **offered}

    def plain(self, answer: Json) -> Said:
        (choice,) = answer["choices"]
        message, usage = choice["message"], answer["usage"]
        said = Said(text=message["content"] or message["refusal"] or "", stop=choice["finish_reason"])
        for call in message.get("tool_calls", []):
            if call["type"] == "custom":
                said.tools.append((call["custom"]["name"], call["custom"]["input"]))
            else:
                said.tools.append((call["function"]["name"], json.loads(call["function"]["arguments"])))
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        said.usage = (usage["prompt_tokens"], cached, usage["completion_tokens"])
        return said

    def streamed(self, stream: str) -> Said:
        message: Json = {"content": "", "refusal": "", "tool_calls": []}
        finish, usage, data = None, None, ""
        for name, data in events(stream):
            assert name == ""
            if data == "[DONE]":
                continue
            chunk = json.loads(data)
            assert chunk["object"] == "chat.completion.chunk"
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                delta = choice["delta"]
                message["content"] += delta.get("content", "")
                message["refusal"] += delta.get("refusal", "")
                for call in delta.get("tool_calls", []):
                    assert call["index"] == len(message["tool_calls"])
                    message["tool_calls"].append(call)
                finish = choice["finish_reason"] or finish
        assert data == "[DONE]"
        return self.plain({"choices": [{"message": message, "finish_reason": finish}], "usage": usage})


class Gemini:
    def url(self, server: str, *, stream: bool) -> str:
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"{server}/v1beta/models/m-1:{method}"

    def body(self, conversation: Sequence[str | int], *, stream: bool, tools: bool) -> Json:
        contents: list[Json] = []
        for entry in conversation:
            if isinstance(entry, str):
                contents.append({"role": "user", "parts": [{"text": entry}]})
                continue
            calls = [{"functionCall": {"name": "f", "args": {}}}] * entry
            results = [{"functionResponse": {"name": "f", "response": {"output": "ok"}}}] * entry
            contents += [{"role": "model", "parts": calls}, {"role": "user", "parts": results}]
        offered = {"tools": [{"functionDeclarations": [{"name": "f"}]}]} if tools else {}
        return {"contents": contents, **offered}

    def plain(self, answer: Json) -> Said:
        (candidate,) = answer["candidates"]
        said = Said(stop=candidate.get("finishReason"))
        for part in candidate["content"]["parts"]:
            if "functionCall" in part:
                said.tools.append((part["functionCall"]["name"], part["functionCall"]["args"]))
            else:
                said.text += part["text"]
        if usage := answer.get("usageMetadata"):
            given, cached = usage["promptTokenCount"], usage["cachedContentTokenCount"]
            said.usage = (given, cached, usage["candidatesTokenCount"])
        return said

    def streamed(self, stream: str) -> Said:
        pieces = [self.plain(json.loads(data)) for _, data in events(stream)]
        assert all(piece.stop is None for piece in pieces[:-1])
        last = pieces[-1]
        text = "".join(piece.text for piece in pieces)
        tools = [call for piece in pieces for call in piece.tools]
        return Said(text=text, tools=tools, stop=last.stop, usage=last.usage)


Client = Anthropic | Responses | Chat | Gemini
CLIENTS: dict[str, Client] = {
    "anthropic": Anthropic(),
    "responses": Responses(),
    "chat": Chat(),
    "gemini": Gemini(),
}


def ask(
    client: Client, server: str, *conversation: str | int, stream: bool = False, tools: bool = True
) -> Said:
    """Send a conversation and read the answer."""
    body = client.body(conversation, stream=stream, tools=tools)
    answer = post(client.url(server, stream=stream), body)
    return client.streamed(answer) if stream else client.plain(json.loads(answer))
