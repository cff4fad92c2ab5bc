"""The web interface, `agentd view`: pages to read a change, comment on it and decide.

web_server, security       listen on one address; control who may use it
application, pages, actions, live_updates  the application: pages, submitted forms, server-sent events
site, page_frame, tabs     shared by all pages
decisions, displayed       what can be decided now and how; what pages have shown
*_view, annotations        what each page shows, read from the change as plain values
html_export                a change as one file
markup                     untrusted text as safe HTML and SVG
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.web.application import build_app
    from agentd.web.html_export import export_change
    from agentd.web.security import AccessGuard, read_or_create_token
    from agentd.web.site import create_site
    from agentd.web.web_server import Address, resolve_address, serve_app
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
