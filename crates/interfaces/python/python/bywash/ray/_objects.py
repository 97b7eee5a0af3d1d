"""What listings and results are, and how their names are said."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Error


@dataclass(frozen=True, slots=True)
class Object:
    """What a listing says."""

    name: str
    size: int
    version: str
    """An entity tag, or the time of a file: it changes when the object does."""


@dataclass(frozen=True, slots=True)
class PassedOver:
    """What is there and never meant."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Unread:
    """What could not be looked at."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Written:
    """A result that is there."""

    size: int
    version: str
    sha256: str | None


def bare(tag: str) -> str:
    """An entity tag without what only some answers put around it: Azure's listings give it without quotes."""
    return tag.removeprefix("W/").strip('"')


class Changed(Error):
    """An object is not the one that was listed any more."""


def shown(text: str) -> str:
    """What has names in it, for a terminal or a log, which they neither command nor break into lines."""
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def said(error: OSError) -> str:
    """The system's words without its number; the name is said by whoever knows it."""
    return error.strerror or str(error)
