"""Settings with limits: what leaves them is refused before anything is measured, all at once."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Size = Annotated[float, Field(ge=0)]
