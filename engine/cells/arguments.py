"""Wrong arguments of public functions, with the types that their annotations ask for.

A function that is `explained` runs as it is, at no cost. Only where it fails with an error from
deep inside are its arguments held to their annotations; if one does not fit, that is the error.
"""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from cellformer.engine.cells.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)
NUMBERS = {int: Integral, float: Real}  # NumPy's, too
WORDS = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "True or False",
    Path: "a path",
    NoneType: "None",
    np.ndarray: "an array",
}
FUNCTION = get_origin(Callable[..., Any])
OF_PROTOCOLS = ("__init__", "__subclasshook__")  # methods that every protocol has
FROM_INSIDE = (TypeError, AttributeError, ValueError, LookupError, ArithmeticError, AssertionError)


def explained(function: F) -> F:
    """A function whose errors name a wrong argument, if there is one, as an InputError."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            found = function(*args, **kwargs)
        except InputError:
            raise
        except FROM_INSIDE as error:
            if reason := wrong(function, args, kwargs):
                raise InputError(reason) from error
            raise
        if inspect.isgenerator(found) and (reason := wrong(function, args, kwargs)):
            raise InputError(reason)  # it would fail later
        return found

    return cast(F, called)


def explained_class(kind: C) -> C:
    """A class whose constructor and public methods are `explained`."""
    for name, member in list(vars(kind).items()):
        if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, explained(member))
    return kind


def wrong(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """A sentence that names the argument that does not fit its annotation; "" if all fit."""
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:  # one is missing, or unknown, which Python says well
        return ""
    for name, value in given.items():
        hint = _hint(function, name)
        if not fits(value, hint):
            return f"{name} must be {words(hint)}; you gave {short(value)}"
    return ""


def _hint(function: Callable[..., Any], name: str) -> Any:
    """A parameter's annotation; Any if it has none, or one that only a type checker imports."""
    own = {name: function.__annotations__.get(name, Any)}
    try:
        return get_type_hints(SimpleNamespace(__annotations__=own), function.__globals__)[name]
    except NameError:
        return Any


def fits(value: Any, hint: Any) -> bool:
    """Whether a value has the type of an annotation. If that cannot be told, it fits."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, one) for one in inner)
    if origin is Literal:
        return isinstance(value, str | int) and value in inner
    if isinstance(origin or hint, type) and hint is not Any:
        return _is_a(value, origin or hint) and _holds(value, origin, inner)
    return True


def _is_a(value: Any, kind: type) -> bool:
    if kind in (Sequence, tuple):  # arrays and lists are as good
        return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)
    if kind is FUNCTION:
        return callable(value)
    if kind is np.ndarray:
        return isinstance(value, np.ndarray | list | tuple)
    if getattr(kind, "_is_protocol", False):
        methods = (name for name, member in vars(kind).items() if inspect.isfunction(member))
        has = all(hasattr(value, name) for name in methods if name not in OF_PROTOCOLS)
        return has and not isinstance(value, str | bytes | Sequence | np.ndarray)
    truth = kind is int and isinstance(value, bool)
    return isinstance(value, NUMBERS.get(kind, kind)) and not truth


def _holds(value: Any, origin: Any, inner: tuple[Any, ...]) -> bool:
    """Whether the contents of a value have the type in an annotation's brackets."""
    if not inner or origin in (FUNCTION, np.ndarray):
        return True
    if isinstance(value, Mapping):
        return all(fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items())
    if origin is tuple and inner[-1] is not Ellipsis:
        return len(value) == len(inner) and all(map(fits, value, inner))
    return not isinstance(value, Collection) or all(fits(one, inner[0]) for one in value)


def words(hint: Any) -> str:
    """An annotation in words, for people."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(map(words, inner))
    if origin is Literal:
        return "one of " + ", ".join(map(repr, inner))
    if origin is FUNCTION:
        return "a function"
    if origin in (Sequence, tuple):
        each = " and ".join(dict.fromkeys(words(one) for one in inner if one is not Ellipsis))
        return f"a list, each {each}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"a dictionary (keys: {words(inner[0])}; values: {words(inner[1])})"
    return WORDS.get(hint) or f"of the class {getattr(hint, '__name__', hint)}"


def short(value: Any) -> str:
    """A value in a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:40]} ... ({type(value).__name__})"
