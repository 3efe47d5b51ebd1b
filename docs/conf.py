"""How Sphinx makes the site: `make docs` writes it to build/site."""

import os
import sys
import tomllib
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent)]
os.environ.setdefault("MPLBACKEND", "Agg")

project = "certifit"
author = "the certifit developers"
release = version = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]["version"]
extensions = ["myst_parser", "sphinx_gallery.gen_gallery", "mathml", "reference"]
exclude_patterns = [
    "_extensions",
    "atlas",
    "lectures",
    "_generated/**/README.md",
    "sg_execution_times.rst",
    "**/sg_execution_times.rst",
]
nitpicky = True
smartquotes = False
html_title = f"certifit {release}"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
# Pages with a table of contents beside them; the atlas has wide lines of code instead.
FOLDERS = ("start", "guides", "tables", "examples", "evidence", "inside", "decisions", "_generated/reference")
WITH_CONTENTS = [f"{folder}/**" for folder in FOLDERS]
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "footer_start": [],
    "footer_end": [],
    "secondary_sidebar_items": {pages: ["page-toc"] for pages in WITH_CONTENTS},
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# The first pages have no siblings to list beside them.
html_sidebars = {"index": [], "evidence/what_was_tried": [], "evidence/faults": [], "evidence/scaling": []}
python_maximum_signature_line_length = 90
pygments_style = "default"

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 4

sphinx_gallery_conf = {
    "examples_dirs": "atlas",
    "gallery_dirs": "_generated/atlas",
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "capture_repr": ("_repr_html_",),
    "min_reported_time": 600,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")
