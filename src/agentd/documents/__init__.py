"""Parse and render the documents of a change. Pure; edits leave all other bytes untouched.

text             lines, fences, comments, headings, sections, edits
frontmatter      the YAML at the top, parsed as data and edited as text
prose            labelled fields, list items, and escaping of embedded text
order            dependency order, and document faults
proposal         with its affected specs; review_blocks: the blocks at its end
spec             with spec_parts (scenarios, removals and renames)
tasks            with task and task_parser
clarifications   questions and answers from before planning
records          the record of a round, and the current state of each finding
review_document  CHALLENGE.md and REVIEW.md rendered from a record; review_edits: edits a person made there
verdict_text     a verdict or self-review marker in plain text
comments, anchors   comments by people, and the text they are attached to
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.documents.anchors import Anchor, MatchKind, anchor_selection, find_anchor
    from agentd.documents.clarifications import (
        CLARIFICATIONS_FILE,
        Clarification,
        Clarifications,
        parse_clarifications,
        render_clarifications,
    )
    from agentd.documents.comments import (
        COMMENTS_FILE,
        QUOTE_LENGTH,
        Comment,
        CommentEntry,
        CommentSeverity,
        CommentState,
        misattributed_comments,
        parse_comments,
        render_comments,
        resolve_comments,
    )
    from agentd.documents.frontmatter import (
        Frontmatter,
        FrontmatterEntry,
        InvalidFrontmatter,
        read_frontmatter,
        remove_frontmatter_key,
        render_frontmatter,
        set_frontmatter_keys,
    )
    from agentd.documents.order import dependency_order
    from agentd.documents.proposal import (
        AffectedSpec,
        Impact,
        Proposal,
        Scope,
        parse_proposal,
        read_proposal,
        render_proposal,
        revise_proposal,
        spec_order,
    )
    from agentd.documents.prose import embed_text, is_empty_phrase, one_line, read_fields, unfence_code
    from agentd.documents.records import (
        ADDED,
        Evidence,
        Finding,
        FindingAnswer,
        FindingEdit,
        PreviousFinding,
        ReviewRecord,
        closed_by_people,
        count_open,
        current_findings,
        edit_content,
        finding_data,
        parse_finding,
        parse_record,
        render_record,
        round_findings,
    )
    from agentd.documents.review_blocks import (
        PROPOSAL_FILE,
        ReviewBlock,
        append_block,
        find_blocks,
        gather_blocks,
        proposal_body,
        text_before_blocks,
    )
    from agentd.documents.review_document import display_author, render_review, review_block
    from agentd.documents.review_edits import read_review_edits
    from agentd.documents.spec import (
        Priority,
        Requirement,
        Spec,
        fill_removed_titles,
        parse_spec,
        read_spec,
        render_spec,
        revise_spec,
    )
    from agentd.documents.spec_parts import (
        REQUIREMENT_PATTERN,
        RemovedItem,
        RenamedRequirement,
        Scenario,
        named_requirement,
        requirement_from_match,
        scenario_name,
    )
    from agentd.documents.task import (
        Task,
        TaskFile,
        canonical_task_id,
        cycle_message,
        dependency_cycle,
        layer_number,
        order_tasks,
        unknown_dependencies,
    )
    from agentd.documents.task_parser import CHECKBOX, checkbox_spans, layer_in_title
    from agentd.documents.tasks import (
        TASKS_FILE,
        TaskList,
        parse_tasks,
        read_tasks,
        render_tasks,
        revise_tasks,
        set_task_status,
        tasks_from_rows,
    )
    from agentd.documents.text import (
        BOM,
        Document,
        Heading,
        InvalidDocument,
        LineKind,
        Section,
        Span,
        decode_text,
        parse_document,
        split_lines,
        trim_lines,
    )
    from agentd.documents.verdict_text import SelfReviewResult, read_self_review, read_verdict
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
