"""From the server's JSON to our dataclasses.

Names are snake_case here and camelCase there. Fields that we do not know are ignored, so a newer
server is no problem; a field that we need and do not get is an error that names it.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from functools import cache
from typing import Any, TypeVar, cast

from .errors import bad_answer as _unusable

T = TypeVar("T")


def decode_json(model: type[T], body: bytes, *, camel: bool = True) -> T:
    try:
        data = json.loads(body)
    except ValueError as error:
        raise _unusable(f"the answer is no JSON: {error}") from error
    return decode(model, data, camel=camel)


def decode(model: type[T], data: object, *, camel: bool = True) -> T:
    """`camel=False` for the sessions API, whose names are snake_case."""
    if not isinstance(data, dict):
        raise _unusable(f"{model.__name__} is not an object")
    values: dict[str, Any] = {}
    for name, wire, kind, required in _fields(cast(Any, model), camel):
        if wire in data:
            values[name] = _value(kind, data[wire], camel, wire)
        elif required:
            raise _unusable(f"{model.__name__} has no {wire}")
    return model(**values)


@cache
def _fields(model: Any, camel: bool) -> list[tuple[str, str, Any, bool]]:
    hints = typing.get_type_hints(model)
    missing = dataclasses.MISSING
    return [
        (
            field.name,
            _camel(field.name) if camel else field.name,
            hints[field.name],
            field.default is missing and field.default_factory is missing,
        )
        for field in dataclasses.fields(model)
    ]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _value(kind: Any, value: Any, camel: bool, wire: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        inner = next(one for one in arguments if one is not type(None))
        return None if value is None else _value(inner, value, camel, wire)
    if origin is tuple:
        if not isinstance(value, list):
            raise _unusable(f"{wire} is not a list")
        return tuple(_value(arguments[0], item, camel, wire) for item in value)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return decode(kind, value, camel=camel)
    if origin is dict:
        # Before the next question: to Python 3.10 a `dict[str, Any]` is a type.
        if not isinstance(value, dict):
            raise _unusable(f"{wire} is not an object")
    elif isinstance(kind, type):
        if kind is float and isinstance(value, int):
            return float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise _unusable(f"{wire} is not of type {kind.__name__}")
    return value
