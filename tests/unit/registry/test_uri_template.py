"""URI templates, and the URIs that match them (RFC 6570, levels 1 and 2)."""

from __future__ import annotations

import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.registry.uri_template import UriTemplate
from mcp_tasks.server.methods.resources import MAX_URI_CHARACTERS


@pytest.mark.parametrize(
    ("template", "uri", "variables"),
    [
        ("docs://handbook", "docs://handbook", {}),
        ("docs://{name}", "docs://handbook", {"name": "handbook"}),
        ("docs://{name}/raw", "docs://handbook/raw", {"name": "handbook"}),
        ("docs://{a}/{b}.txt", "docs://x/y.txt", {"a": "x", "b": "y"}),
        ("docs://{a}-{b}", "docs://x-y", {"a": "x", "b": "y"}),
        ("docs://{name}", "docs://a%20b%2Fc", {"name": "a b/c"}),
        ("docs://{name}", "docs://%E2%82%AC", {"name": "€"}),
        ("files://{+path}", "files://a/b/c.txt", {"path": "a/b/c.txt"}),
        ("files://{+path}", "files://a?b#c", {"path": "a?b#c"}),
        ("files://{disk}/{+path}", "files://c/a/b", {"disk": "c", "path": "a/b"}),
        ("files:///{+path}/end", "files:///a/end/b/end", {"path": "a/end/b"}),
        ("q://find?text={text}", "q://find?text=a+b", {"text": "a+b"}),
        ("files://{disk}/{+path}", "files://c\nd/a\nb", {"disk": "c\nd", "path": "a\nb"}),
        ("a.b+c-d:{x}", "a.b+c-d:1", {"x": "1"}),
    ],
)
def test_a_uri_gives_the_variables_back(template: str, uri: str, variables: dict[str, str]) -> None:
    found = UriTemplate(template)
    assert found.text == template
    assert found.match(uri) == variables
    assert found.variables == list(variables)


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("docs://handbook", "docs://handbook/"),
        ("docs://handbook", "docs://HANDBOOK"),
        ("docs://hand.book", "docs://hand_book"),  # a dot is a dot
        ("docs://{name}", "docs://"),
        ("docs://{name}", "docs://a/b"),
        ("docs://{name}", "docs://a?b"),
        ("docs://{name}", "docs://a#b"),
        ("docs://{name}", "other://a"),
        ("docs://{name}", "xdocs://a"),
        ("docs://{name}/raw", "docs://a/raw\n"),
        ("files://{+path}", "files://"),
        ("q://find?text={text}", "q://findXtext=a"),
    ],
)
def test_any_other_uri_does_not_match(template: str, uri: str) -> None:
    assert UriTemplate(template).match(uri) is None


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("", "not a URI"),
        ("handbook", "not a URI"),
        ("docs:", "not a URI"),
        ("1docs://x", "not a URI"),
        ("docs://a b", "not a URI"),
        ("{scheme}", "not a URI"),
        ("docs://{name", "not a URI"),
        ("docs://name}", "not a URI"),
        ("docs://{}", "neither"),
        ("docs://{a b}", "neither"),
        ("docs://{1}", "neither"),
        ("docs://{a-b}", "neither"),
        ("docs://{a,b}", "neither"),
        ("docs://{name*}", "neither"),
        ("docs://{name:3}", "neither"),
        ("docs://{/name}", "neither"),
        ("docs://{?name}", "neither"),
        ("docs://{&name}", "neither"),
        ("docs://{#name}", "neither"),
        ("docs://{.name}", "neither"),
        ("docs://{;name}", "neither"),
        ("docs://{a}{b}", "docs"),  # where does one end?
        ("docs://{a}/{a}", "twice"),
        ("docs://{a}/{+a}", "twice"),
    ],
)
def test_a_template_that_cannot_be_read_backwards_is_refused(template: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        UriTemplate(template)


@pytest.mark.parametrize(
    ("template", "between"),
    [("x://{a}-{b}-{c}/raw", "-"), ("x://{+a}/{+b}/{+c}/raw", "/"), ("x://{a}.{+b}.{c}.gz", ".")],
)
def test_no_uri_takes_long_to_match(template: str, between: str) -> None:
    """A client chooses the URI. The limit is generous: backtracking takes ten times as long."""
    found = UriTemplate(template)
    start = time.process_time()
    assert found.match("x://" + between * (MAX_URI_CHARACTERS - 4)) is None
    assert time.process_time() - start < 1


@given(st.text(min_size=1), st.text(min_size=1))
def test_the_variables_of_an_expanded_template_are_recovered(name: str, path: str) -> None:
    """A client percent-encodes what it puts in: all but the unreserved for `{name}`, and leaves
    the reserved as they are for `{+path}` (RFC 6570, section 3.2.1).
    """
    encoded = quote(name, safe="~")
    reserved = quote(path, safe=":/?#[]@!$&'()*+,;=~")
    found = UriTemplate("docs://{name}/in/{+path}").match(f"docs://{encoded}/in/{reserved}")
    assert found == {"name": name, "path": path}


@given(st.text())
def test_a_variable_ends_at_the_first_occurrence_of_the_text_behind_it(uri: str) -> None:
    template = UriTemplate("a:{x}b{+y}c")
    found = template.match(f"a:{uri}c")
    assert (found is not None) == (
        "b" in uri[1:-1] and all(c not in uri[: uri.index("b", 1)] for c in "/?#")
    )
