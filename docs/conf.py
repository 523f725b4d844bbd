"""How Sphinx makes the site: `sphinx-build -W docs site` from the root of a checkout."""

import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_site"))  # what writes parts of pages

project = "dpframe"
author = "The dpframe developers"
copyright = author
version = release = metadata.version("dpframe")
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "dpframe_site",
]
exclude_patterns = ["_site"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_dmath_double_inline = True
html_math_renderer = "mathml"  # of `dpframe_site`: no script from elsewhere
myst_heading_anchors = 4

nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / ".jupyter_cache")
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True  # a ledger of a run before would be spent already
nb_merge_streams = True

default_role = "code_or_link"  # of `dpframe_site`
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say what the signature cannot
napoleon_google_docstring = False
napoleon_attr_annotations = False
napoleon_use_param = False
napoleon_use_rtype = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

intersphinx_mapping = {  # the files are for builds without a network
    "pandas": ("https://pandas.pydata.org/docs", (None, "inventories/pandas.inv")),
    "pandera": ("https://pandera.readthedocs.io/en/stable", (None, "inventories/pandera.inv")),
}
intersphinx_timeout = 5

copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = ">>> |\\.\\.\\. |\\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "dpframe"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "glossary", "changelog", "contributing")}
html_copy_source = False
html_theme_options = {
    "logo": {
        "text": "dpframe",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_persistent": [],
    "navbar_end": ["search-button", "theme-switcher"],
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}
