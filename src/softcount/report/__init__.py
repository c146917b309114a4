"""One HTML file that shows a run, or compares several.

    folder ──▶ evidence ──▶ curves, world, atoms, clip ──▶ one JSON document ──▶ page

Python decides what is shown and computes every number; the page's own script draws it. The
file needs no network and no server: styles, script, data and frames are all inside.
"""

from softcount.report.page import write_report

__all__ = ["write_report"]
