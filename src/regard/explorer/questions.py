"""What the page may ask: every field bounded, everything else refused."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from regard.errors import RegardError

LONGEST = 600  # words of a sentence, on either side
Text = Annotated[str, Field(max_length=12_000)]
Name = Annotated[str, Field(max_length=300)]
Place = Annotated[int, Field(ge=0, lt=LONGEST)]
Head = Annotated[int, Field(ge=0, lt=1024)]
Factor = Annotated[float, Field(ge=-10, le=10, allow_inf_nan=False)]
Checkpoint = (
    Annotated[int, Field(ge=0, lt=10**12)]
    | Annotated[str, Field(pattern=r"^(reported|last|best|[0-9]{1,12})$")]
)
Side = Literal["encoder", "decoder"]


class Strict(BaseModel):
    """No field that is not known."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Terms(Strict):
    """A factor for each of the nine terms."""

    kind: Literal["terms"]
    site: Name
    head: Head | None = None
    factors: Annotated[tuple[Factor, ...], Field(min_length=9, max_length=9)]


class Weight(Strict):
    """The weight of one cell."""

    kind: Literal["weight"]
    site: Name
    head: Head | None = None
    step: Place
    source: Place
    weight: Annotated[float, Field(ge=0, le=1)]


class NoHead(Strict):
    """A head taken out."""

    kind: Literal["head"]
    site: Name
    head: Head


class NoUnit(Strict):
    """A unit taken out."""

    kind: Literal["unit"]
    side: Side
    unit: Annotated[int, Field(ge=0, lt=100_000)]


class NoPart(Strict):
    """μ, χ or Δ taken out."""

    kind: Literal["part"]
    site: Name
    part: Literal["temporal", "input", "delta"]
    where: Literal["queries", "keys", "alignment", "context"]


class OtherState(Strict):
    """A state from another sentence, put at one step."""

    kind: Literal["state"]
    side: Side
    step: Place
    sentence: Text
    other: Place


Changed = Annotated[
    Terms | Weight | NoHead | NoUnit | NoPart | OtherState, Field(discriminator="kind")
]


class Question(Strict):
    """One sentence, put to one thing, under some changes.

    `forced` are output words that are said whatever the model would say, by step; `target` is fed
    instead of the model's own words where `feed` says so. Of a recording, `sample` is looked at.
    """

    thing: Name
    checkpoint: Checkpoint = "reported"
    source: Text = ""
    target: Text | None = None
    forced: Annotated[dict[Place, Name], Field(max_length=LONGEST)] = {}
    feed: Literal["own", "target"] = "own"
    sample: Annotated[int, Field(ge=0)] | None = None
    changes: Annotated[tuple[Changed, ...], Field(max_length=32)] = ()

    @property
    def key(self) -> str:
        """The same for the same question."""
        return self.model_dump_json()


class HeadQuestion(Question):
    """The same, about one head of one attention; of one decoder step, where given."""

    site: Name
    head: Head = 0
    step: Place | None = None


class BeamQuestion(Question):
    """The same, with a beam."""

    width: Annotated[int, Field(ge=1, le=10)] = 4


class ApartQuestion(Strict):
    """Two heads that are held against each other."""

    first: HeadQuestion
    second: HeadQuestion


class NearQuestion(Question):
    """The recorded states that are nearest to one of the sentence's."""

    side: Side = "encoder"
    step: Place = 0
    count: Annotated[int, Field(ge=1, le=50)] = 8


class UnitsQuestion(Question):
    """Units and gates along the sentence, and a probe's reading of each step."""

    side: Side = "encoder"
    label: Literal["none", "word", "position"] = "none"


class InspectQuestion(Strict):
    """An instrument, put on one thing or on several seeds."""

    things: Annotated[tuple[Name, ...], Field(min_length=1, max_length=32)]
    instrument: Name
    settings: Annotated[dict[Name, Any], Field(max_length=30)] = {}


class SeedsQuestion(Strict):
    """Another question by its name, put to several seeds of one configuration."""

    name: Name
    things: Annotated[tuple[Name, ...], Field(min_length=1, max_length=32)]
    question: Annotated[dict[Name, Any], Field(max_length=30)]


class ExportQuestion(HeadQuestion):
    """A view as a file."""

    form: Literal["svg", "csv", "html", "python"]
    source_step: Place | None = None


Q = TypeVar("Q", bound=Strict)


def read_question(kind: type[Q], body: bytes) -> Q:
    """A request's body as a question; whatever is wrong with it, in sentences."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise RegardError("The request is not JSON.") from None
    return check_question(kind, data)


def check_question(kind: type[Q], data: Any) -> Q:
    """Plain data as a question."""
    try:
        return kind.model_validate(data)
    except (ValidationError, RecursionError) as error:
        faults = error.errors()[:5] if isinstance(error, ValidationError) else []
        said = [_explain(fault) for fault in faults] or ["The request is nested too deep."]
        raise RegardError(*said) from None


def _explain(fault: Any) -> str:
    where = ".".join(str(part) for part in fault["loc"])[:100] or "the request"
    return f"'{where}' does not fit: {fault['msg'].lower()}."
