"""Resources, as their authors declare them (resources.mdx).

    @resource("docs://handbook")                one resource
    @resource("docs://chapters/{number}")       a template

The function's parameters are the template's variables.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from . import schema
from .completion import Completer, completers
from .content import is_contents, resource_contents
from .context import CONTEXTS, Context
from .decorated_function import Function, attach, call, context_parameter
from .list_definition import build_definition
from .uri_template import UriTemplate

CacheScope = Literal["public", "private"]
JSON: Final = "application/json"

_ANY_VALUE: Final[TypeAdapter[Any]] = TypeAdapter(
    Any,
    # By default pydantic writes NaN as null. Kept as it is, NaN is refused by json.dumps below.
    config=ConfigDict(ser_json_inf_nan="constants"),
)


class NotFound(Exception):
    """No resource has this URI: the template matches it, but its variables' values name nothing."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A function that reads a resource, or every resource that matches a template."""

    uri: UriTemplate
    name: str
    title: str | None
    description: str
    mime_type: str | None
    annotations: Mapping[str, Any]
    icons: Sequence[Mapping[str, Any]]
    meta: Mapping[str, Any]
    fresh_for: timedelta
    cache_scope: CacheScope
    permissions: Sequence[Mapping[str, Any]]
    function: Callable[..., Any]
    arguments: type[BaseModel]
    context_parameter: str | None
    """The parameter that takes the TaskContext."""
    complete: Mapping[str, Completer]

    def definition(self) -> dict[str, Any]:
        """The resource or template as the lists show it (resources.mdx, "Data Types")."""
        return build_definition(
            **{"uriTemplate" if self.uri.variables else "uri": self.uri.text},
            name=self.name,
            title=self.title,
            description=self.description,
            mimeType=self.mime_type,
            annotations=self.annotations,
            icons=self.icons,
            meta=self.meta,
        )

    def read(self, uri: str, variables: Mapping[str, str], task: Context) -> list[dict[str, Any]]:
        """Run the function, and return the contents (resources.mdx, "Resource Contents").

        Raises NotFound, also when a variable does not have its parameter's type, and ValueError for
        a value that is not JSON.
        """
        try:
            values = schema.text_arguments(self.arguments, variables)
        except schema.InvalidArguments:
            raise NotFound(uri) from None
        return self._contents(uri, call(self.function, values, self.context_parameter, task))

    def _contents(self, uri: str, value: Any) -> list[dict[str, Any]]:
        if isinstance(value, (str, bytes)):
            return [resource_contents(uri, value, self.mime_type)]
        if isinstance(value, list) and value and all(map(is_contents, value)):
            return value
        document = _ANY_VALUE.dump_python(value, mode="json", by_alias=True)
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
        return [resource_contents(uri, text, self.mime_type or JSON)]


def resource(
    uri: str,
    *,
    name: str | None = None,
    title: str | None = None,
    mime_type: str | None = None,
    annotations: Mapping[str, Any] | None = None,
    icons: Sequence[Mapping[str, Any]] = (),
    meta: Mapping[str, Any] | None = None,
    complete: Mapping[str, Completer | Iterable[str]] | None = None,
    fresh_for: timedelta = timedelta(0),
    cache_scope: CacheScope = "private",
    permissions: Sequence[Mapping[str, Any]] = (),
) -> Callable[[Function], Function]:
    """Declare a function as a resource. The function stays what it is.

    It returns text, bytes, a list of `content.resource_contents(...)`, or any value that pydantic
    can write as JSON. It runs within the request. It may have a parameter of the type TaskContext,
    and ask the client.

    Args:
        uri: the resource's URI, or a template. `{name}` matches up to the next `/`; `{+name}`
            matches `/` too. Values are percent-decoded, so both kinds may hold `/` and `..`: check
            a value before you use it in a path or a key.
        complete: values for the template's variables, for `completion/complete`: a list, or a
            function of the text typed so far and of the other variables. Enums and Literals need
            none.
        fresh_for: how long clients may cache the contents, `ttlMs`.
        cache_scope: "public" only when all callers read the same contents.
        permissions: IAM policy statements for the function that answers requests.

    Raises TypeError or ValueError when the declaration cannot be offered to clients.
    """

    def declare(target: Function) -> Function:
        template = UriTemplate(uri)
        arguments = _arguments(target, template)
        declaration = Resource(
            uri=template,
            name=name or target.__name__,
            title=title,
            description=inspect.getdoc(target) or "",
            mime_type=mime_type,
            annotations=annotations or {},
            icons=icons,
            meta=meta or {},
            fresh_for=fresh_for,
            cache_scope=cache_scope,
            permissions=permissions,
            function=target,
            arguments=arguments,
            context_parameter=context_parameter(target),
            complete=completers(arguments, complete or {}, uri),
        )
        return attach(target, declaration)

    return declare


def _arguments(function: Callable[..., Any], template: UriTemplate) -> type[BaseModel]:
    """The template's variables as the function's parameters. Raises TypeError when they differ."""
    arguments = schema.parameters_model(function, CONTEXTS)
    names = set(schema.parameters(arguments))
    if names != set(template.variables):
        raise TypeError(
            f"{function.__module__}.{function.__qualname__}: the parameters {sorted(names)} are "
            f"not the variables of {template.text}"
        )
    return arguments
