"""Commands from a repository run only if this user has trusted them, each by its hash.

`items` says what a repository wants run, `store` what the user has trusted, `standing` holds one against the other.
Call `ensure` before anything of a repository is run; commands that only read never need it.
"""

from agentd.trust.items import Item, Kind, agent_item, check_item, overrides, prompt_item, wanted
from agentd.trust.standing import Standing, Status, ensure, is_trusted, refusal, standings, untrusted
from agentd.trust.store import Trusted, give, withdraw

__all__ = [
    "Item",
    "Kind",
    "Standing",
    "Status",
    "Trusted",
    "agent_item",
    "check_item",
    "ensure",
    "give",
    "is_trusted",
    "overrides",
    "prompt_item",
    "refusal",
    "standings",
    "untrusted",
    "wanted",
    "withdraw",
]
