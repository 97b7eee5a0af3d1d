"""Why an object was not done."""

from __future__ import annotations

from ..errors import Error


class Taken(Error):
    """Something that this manifest does not know is there where a result is to be."""

    def __init__(self) -> None:
        why = "its result's name is taken at the target by what this manifest does not know"
        super().__init__(f"{why}; is another run writing there? Name another target, or replace it with --force (overwrite)")
