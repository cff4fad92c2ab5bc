"""Files that survive a crash: atomic writes, locks, and transactions over several files."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.storage import files
    from agentd.storage.locks import (
        LockHolder,
        RunLock,
        active_run,
        interrupted_run,
        is_lock_lost,
        run_lock,
        write_lock,
    )
    from agentd.storage.read_scope import is_read_only, read_once, read_only
    from agentd.storage.transaction import finish_transaction, run_transaction, undo_transaction
    from agentd.storage.transaction_record import (
        MovePath,
        Operation,
        RemoveFile,
        TransactionRecord,
        WriteFile,
        drop_transaction,
        pending_transactions,
        read_transaction,
        sweep_transactions,
    )
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
