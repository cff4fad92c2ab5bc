"""A change on disk: its folder, state, journal and comments, and where to find it.

folder, state     the change's folder; STATE.yaml as data. Only `folder` writes STATE.yaml
lifecycle, ids    which change a command refers to; creating and dropping one
locator, index    finding changes across branches and worktrees; a cache that makes listings fast
journal           what happened, and the text for each event
inbox, run_control   decisions for a waiting run; the result of the last run, stopping a run
comment_store, text_cache     comments by people; documents as they were when judged or shown
overview, overlaps   one row per change; changes that touch the same requirement
plan_validation      the validation rules applied to a change on disk
archive_recovery     completes interrupted archives before changes are read
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.change.archive_recovery import (
        CHANGE_FACT,
        archive_lock,
        archive_record_path,
        completed_archives,
        undo_record,
    )
    from agentd.change.comment_store import (
        CommentChanged,
        add_comment,
        comment_anchor,
        comments_lock,
        current_comments,
        edit_comment,
        freeze_comments,
        frozen_comments,
        link_findings,
        read_comments,
        remove_comment,
        reopen_comment,
        reply_to_comment,
        resolve_comment,
        set_comment_severity,
        unfreeze_comments,
    )
    from agentd.change.folder import (
        STATE_FILE,
        Change,
        document_bytes,
        document_hash,
        encode_state,
        linked_documents,
        plan_files,
        read_record,
        read_records,
        read_state,
        readable_documents,
        record_files,
        reviewable_part,
        sort_records,
    )
    from agentd.change.ids import archived_change_id, check_change_id, suggest_change_id, unique_id
    from agentd.change.inbox import Decision, Inbox
    from agentd.change.index import ChangeSummary
    from agentd.change.journal import Journal, describe_event, is_in_progress
    from agentd.change.lifecycle import (
        ChangeStanding,
        create_change,
        current_location,
        drop_change,
        new_change_folder,
        open_change,
        resolve_change,
    )
    from agentd.change.locator import ChangeLocator, LocatedChange
    from agentd.change.overlaps import NAMES_SHOWN, Overlap, OverlapIndex, OverlappingChange, format_names, read_touched
    from agentd.change.overview import (
        build_overlap_index,
        change_row,
        has_run_failed,
        is_change_running,
        next_command,
        overlapping_changes,
        refresh_touched,
    )
    from agentd.change.plan_validation import (
        MainSpecs,
        check_plan,
        fixed_documents,
        remaining_faults,
        validate_change,
        validate_changes,
        write_fixes,
    )
    from agentd.change.run_control import last_outcome, read_outcome, save_outcome, stop_run
    from agentd.change.state import (
        BaseSnapshot,
        BudgetIncrease,
        CallRecord,
        ChangeState,
        GitLocation,
        RunState,
        StepRecord,
        parse_call,
    )
    from agentd.change.text_cache import cache_plan, cached_text
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
