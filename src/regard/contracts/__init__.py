"""What members of each kind have to keep, for Regard's own and for everybody's.

`regard check KIND NAME` and the project's tests run the same checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.lazy import attach

if TYPE_CHECKING:
    from regard.contracts.check import KINDS as KINDS
    from regard.contracts.check import check as check
    from regard.contracts.check import examine_member as examine_member
    from regard.contracts.contract import ContractError as ContractError
    from regard.contracts.contract import Outcome as Outcome
else:
    __getattr__, __dir__, __all__ = attach(__name__)
