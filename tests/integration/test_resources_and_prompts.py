"""Resources, prompts and completions over HTTP."""

from __future__ import annotations

import base64

from tests.integration.support.client import Client


def test_lists_are_sorted_and_may_be_cached(plain_client: Client) -> None:
    for method, member, key in [
        ("resources/list", "resources", "uri"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate"),
        ("prompts/list", "prompts", "name"),
        ("tools/list", "tools", "name"),
    ]:
        result = plain_client.request(method).result
        names = [item[key] for item in result[member]]
        assert names == sorted(names) != []
        # Which tools a client is shown depends on what it declares.
        scope = "private" if method == "tools/list" else "public"
        assert (result["ttlMs"], result["cacheScope"]) == (300_000, scope)


def test_text_and_binary_resources_are_read(plain_client: Client) -> None:
    text = plain_client.request("resources/read", {"uri": "note://fixed"}).result
    assert text["contents"] == [{"uri": "note://fixed", "mimeType": "text/plain", "text": "a note"}]
    assert (text["ttlMs"], text["cacheScope"]) == (300_000, "private")
    data = plain_client.request("resources/read", {"uri": "note://pixels"}).result["contents"][0]
    assert base64.b64decode(data["blob"]) == b"\x89PNG"


def test_a_resource_template_is_read_by_uri(plain_client: Client) -> None:
    result = plain_client.request("resources/read", {"uri": "note://by/ada"}).result
    assert result["contents"][0]["text"] == "a note by ada"


def test_an_unknown_resource_or_prompt_is_an_error(plain_client: Client) -> None:
    for uri in ("note://nothing", "note://by/nobody", "note://by/ada/more", "", "no uri at all"):
        headers = {"Mcp-Name": uri} if uri else {"Mcp-Name": "=?base64??="}
        error = plain_client.request("resources/read", {"uri": uri}, headers).error
        assert (error["code"], error["data"]) == (-32602, {"uri": uri})


def test_a_prompt_takes_arguments_and_returns_messages(plain_client: Client) -> None:
    arguments = {"topic": "cells", "length": "long"}
    result = plain_client.request("prompts/get", {"name": "essay", "arguments": arguments}).result
    first, link, last = result["messages"]
    assert first["content"]["text"] == "Write a long essay about cells"
    assert link["content"]["type"] == "resource_link"
    assert last["role"] == "assistant"


def test_the_error_names_a_prompts_wrong_arguments(plain_client: Client) -> None:
    for arguments, named in [({}, "topic"), ({"topic": "a", "length": "x"}, "length")]:
        answer = plain_client.request("prompts/get", {"name": "essay", "arguments": arguments})
        assert answer.error["code"] == -32602
        assert named in answer.error["message"]


def test_arguments_and_variables_are_completed(plain_client: Client) -> None:
    def values(ref: dict[str, str], name: str, value: str) -> dict[str, object]:
        params = {"ref": ref, "argument": {"name": name, "value": value}}
        completion: dict[str, object] = plain_client.request("completion/complete", params).result[
            "completion"
        ]
        return completion

    prompt = {"type": "ref/prompt", "name": "essay"}
    assert values(prompt, "length", "l") == {"values": ["long"], "total": 1, "hasMore": False}
    many = values(prompt, "topic", "a")
    assert (many["total"], many["hasMore"]) == (150, True)
    template = {"type": "ref/resource", "uri": "note://by/{name}"}
    assert values(template, "name", "a")["values"] == ["ada", "alan", "grace"]
