"""Resources, as their authors declare them (resources.mdx).

    @resource("docs://handbook")                one resource
    @resource("docs://chapters/{number}")       a template

A template's variables are the parameters.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter

from . import schema
from .completion import Completer, completers
from .content import is_contents, resource_contents
from .context import TaskContext
from .definition import shown
from .tool import DECLARATION
from .uri_template import UriTemplate

Function = TypeVar("Function", bound=Callable[..., Any])

CacheScope = Literal["public", "private"]
JSON: Final = "application/json"

_ANYTHING: Final[TypeAdapter[Any]] = TypeAdapter(
    Any,
    # So that NaN is no silent null, but an error.
    config=ConfigDict(ser_json_inf_nan="constants"),
)


class NotFound(Exception):
    """There is no such resource: the template matched, but nothing has these values."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A function that reads a resource, or all those that a template describes."""

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
    context: str | None
    complete: Mapping[str, Completer]

    def definition(self) -> dict[str, Any]:
        """The resource or template as the lists show it (resources.mdx, "Data Types")."""
        return shown(
            **{"uriTemplate" if self.uri.variables else "uri": self.uri.text},
            name=self.name,
            title=self.title,
            description=self.description,
            mimeType=self.mime_type,
            annotations=self.annotations,
            icons=self.icons,
            meta=self.meta,
        )

    def read(
        self, uri: str, variables: Mapping[str, str], task: TaskContext
    ) -> list[dict[str, Any]]:
        """Run the function, and return the contents (resources.mdx, "Resource Contents").

        Raises NotFound, also for variables that do not have the parameters' types.
        """
        try:
            values = schema.text_arguments(self.arguments, variables)
        except schema.InvalidArguments:
            raise NotFound(uri) from None
        if self.context:
            values[self.context] = task
        return self._contents(uri, self.function(**values))

    def _contents(self, uri: str, value: Any) -> list[dict[str, Any]]:
        if isinstance(value, (str, bytes)):
            return [resource_contents(uri, value, self.mime_type)]
        if isinstance(value, list) and value and all(map(is_contents, value)):
            return value
        document = _ANYTHING.dump_python(value, mode="json", by_alias=True)
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

    It returns text, bytes, a list of `content.resource_contents(...)`, or anything else that
    becomes JSON. It runs within the request, may declare a TaskContext, and may ask.

    Args:
        uri: the resource's URI, or a template: `{name}` matches up to the next `/`, `{+name}` on.
            Values are percent-decoded, so either may hold `/` and `..`: check one that becomes a
            path or a key.
        complete: values for the template's variables, for `completion/complete`: a list, or a
            function of what was typed and of the variables so far. Enums and Literals need none.
        fresh_for: how long clients may keep what they read, `ttlMs`.
        cache_scope: "public" only when everybody reads the same.
        permissions: IAM statements for the function that answers requests.

    Raises TypeError or ValueError when the declaration cannot be offered to clients.
    """

    def declare(target: Function) -> Function:
        template = UriTemplate(uri)
        arguments = schema.parameters_model(target, TaskContext)
        names = set(schema.parameters(arguments))
        if names != set(template.variables):
            raise TypeError(
                f"{target.__module__}.{target.__qualname__}: the parameters {sorted(names)} are "
                f"not the variables of {uri}"
            )
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
            context=schema.context_parameter(target, TaskContext),
            complete=completers(arguments, complete or {}, uri),
        )
        setattr(target, DECLARATION, declaration)
        return target

    return declare
