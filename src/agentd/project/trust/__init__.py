"""Commands from a repository run only if this user has trusted them, each by its hash.

`items` says what a repository wants run, `store` what the user has trusted, `standing` holds one against the other.
Call `ensure` before anything of a repository is run; commands that only read never need it.
"""

from agentd.project.trust.items import (
    TrustItem,
    TrustKind,
    agent_item,
    check_item,
    prompt_item,
    prompt_overrides,
    trust_items,
)
from agentd.project.trust.status import (
    TrustState,
    TrustStatus,
    ensure_trusted,
    is_trusted,
    trust_refusal,
    trust_states,
    untrusted_items,
)
from agentd.project.trust.store import TrustedHash, grant_trust, revoke_trust

__all__ = [
    "TrustItem",
    "TrustKind",
    "TrustState",
    "TrustStatus",
    "TrustedHash",
    "agent_item",
    "check_item",
    "ensure_trusted",
    "grant_trust",
    "is_trusted",
    "prompt_item",
    "prompt_overrides",
    "revoke_trust",
    "trust_items",
    "trust_refusal",
    "trust_states",
    "untrusted_items",
]
