"""Import projects from other tools, and export specs to them. The originals are never changed.

import_model      the imported project as data; reading source files without following links; writing all or nothing
openspec          an OpenSpec project, with openspec_spec (specs and proposals) and openspec_delta (changes)
speckit           a Spec Kit project
task_lists        checkbox lists as tasks.md
openspec_export   the specs as an OpenSpec tree
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.migrate.import_model import (
        ImportedChange,
        ImportedProject,
        ImportNote,
        read_source_tree,
        refuse_existing,
        write_import,
    )
    from agentd.migrate.openspec import OPENSPEC_FOLDER, read_openspec
    from agentd.migrate.openspec_export import EXPORT_FOLDER, distinct_capabilities, export_spec, write_export
    from agentd.migrate.speckit import SPECKIT_FOLDERS, read_speckit
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
