"""JSON Schemas from Python types, by means of pydantic: of parameters, of results, and of forms.

tools.mdx, "Tool" (inputSchema, outputSchema); elicitation.mdx, "Requested Schema".
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.fields import FieldInfo

from .. import json_schema
from ..tasks.forms import InvalidQuestion, check_form
from .argument_check import checked, checked_texts
from .refusal import InvalidArguments as InvalidArguments

_FIELD_PREFIX = "argument_"
"""Of a model's field for a parameter, because a field must not have a name of pydantic's own."""


class WrittenSchema:
    """A JSON Schema of arguments or results that an author wrote, and that clients see as it is."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Raises InvalidSchema."""
        self.schema = dict(schema)
        self._compiled = json_schema.compile_schema(self.schema)

    def check(self, value: Any, name: str) -> None:
        """Raises SchemaMismatch for the first violation, which it locates within `name`."""
        json_schema.check_value(self._compiled, value, name)


def hints(function: Callable[..., Any]) -> dict[str, Any]:
    """A function's annotations, evaluated, with `Annotated` kept."""
    return get_type_hints(function, include_extras=True)


def parameters_model(function: Callable[..., Any], skip: Sequence[type]) -> type[BaseModel]:
    """A pydantic model of a function's parameters, without the one annotated as one of `skip`.

    Raises TypeError for a parameter that a JSON object cannot carry: unannotated, positional-only,
    `*args` or `**kwargs`.
    """
    annotations = hints(function)
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        where = f"{function.__module__}.{function.__qualname__}: parameter {name!r}"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{where} must be a named parameter")
        if name not in annotations:
            raise TypeError(f"{where} needs a type annotation")
        if annotations[name] in skip:
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[f"{_FIELD_PREFIX}{name}"] = (
            Annotated[annotations[name], Field(alias=name)],
            default,
        )
    return create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **fields)


def forbid_extra(model: type[BaseModel]) -> type[BaseModel]:
    """The model, refusing fields that it does not define."""
    namespace = {
        "__module__": model.__module__,
        "__doc__": model.__doc__,
        "model_config": ConfigDict(extra="forbid"),
    }
    return types.new_class(model.__name__, (model,), exec_body=lambda ns: ns.update(namespace))


def object_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a model, without pydantic's generated titles."""
    schema = model.model_json_schema()
    _drop_titles(schema)
    schema.pop("description", None)
    return {"type": "object", **schema}


def result_adapter(annotation: Any) -> TypeAdapter[Any] | None:
    """The adapter of a return annotation; None for text, None, Any, and a missing annotation."""
    if annotation in (str, None, type(None), Any, inspect.Signature.empty):
        return None
    return TypeAdapter(annotation)


def result_schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a result as it is written to a client."""
    schema = adapter.json_schema(mode="serialization")
    _drop_titles(schema)
    return schema


def validate_arguments(model: type[BaseModel], arguments: Any) -> dict[str, Any]:
    """Check arguments and convert them to the function's types.

    Raises InvalidArguments.
    """
    return _by_parameter(checked(model, arguments))


def text_arguments(model: type[BaseModel], arguments: Mapping[str, str]) -> dict[str, Any]:
    """Convert arguments that are all text: those of prompts, and the variables of URI templates.

    Raises InvalidArguments.
    """
    return _by_parameter(checked_texts(model, arguments))


def parameters(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a `parameters_model`, by the names of the parameters."""
    return {name.removeprefix(_FIELD_PREFIX): field for name, field in model.model_fields.items()}


def choices(annotation: Any) -> list[str]:
    """The values of an enum or a Literal, as text; an empty list for any other type."""
    schema = TypeAdapter(annotation).json_schema()
    definitions = schema.get("$defs", {})
    found = []
    for option in (_resolved(option, definitions) for option in schema.get("anyOf", [schema])):
        found += option.get("enum", [option["const"]] if "const" in option else [])
    return [str(value) for value in found]


def requested_schema(form: type[BaseModel]) -> dict[str, Any]:
    """The schema of an elicitation form: a flat object of primitive properties.

    Raises InvalidQuestion, with the name of the field, for a field that is not primitive. Give an
    optional field a default instead of None, and ask several questions instead of a nested model.
    """
    schema = form.model_json_schema()
    definitions = schema.get("$defs", {})
    properties = {
        name: _resolved(declared, definitions)
        for name, declared in schema.get("properties", {}).items()
    }
    result: dict[str, Any] = {"type": "object", "properties": properties}
    if "required" in schema:
        result["required"] = schema["required"]
    try:
        check_form(result)
    except InvalidQuestion as error:
        raise InvalidQuestion(f"{form.__name__}.{error}") from None
    return result


def _resolved(field: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The field with the `$ref` of an enum class inlined, because a form has no `$defs`."""
    reference = field.get("$ref")
    if reference is None:
        return field
    target = definitions[reference.removeprefix("#/$defs/")]
    return {**target, **{key: value for key, value in field.items() if key != "$ref"}}


def _by_parameter(values: BaseModel) -> dict[str, Any]:
    """The values of a `parameters_model`, by the names of the parameters."""
    return {
        name.removeprefix(_FIELD_PREFIX): getattr(values, name)
        for name in type(values).model_fields
    }


def _drop_titles(schema: Any, name: str | None = None) -> None:
    """Remove the titles that pydantic makes from names: they add nothing, and cost tokens.

    `name` is the property's or definition's name. A title that differs from it is the author's, and
    stays.
    """
    if isinstance(schema, list):
        for item in schema:
            _drop_titles(item)
    elif isinstance(schema, dict):
        title = schema.get("title")
        if isinstance(title, str) and (name is None or _normalized(title) == _normalized(name)):
            del schema["title"]
        for key, child in schema.items():
            if key in ("properties", "$defs"):
                for child_name, grandchild in child.items():
                    _drop_titles(grandchild, child_name)
            elif key not in ("default", "examples", "const", "enum"):
                _drop_titles(child)


def _normalized(text: str) -> str:
    return text.replace("_", "").replace(" ", "").lower()
