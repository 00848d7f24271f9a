# SPDX-License-Identifier: GPL-2.0
#
# How sphinx makes pages of the documents: make docs.

import re

from docutils import nodes

project = 'twheel'
root_doc = 'index'
html_theme = 'alabaster'
html_theme_options = {'page_width': 'auto', 'body_max_width': '100ex', 'sidebar_width': '30ex'}
html_copy_source = False
html_show_copyright = False
highlight_language = 'none'


# The documents name each other as files, ``design.rst``, which any reader can follow.  Pages
# have links there.
def link_documents(app, doctree, docname):
    for literal in list(doctree.findall(nodes.literal)):
        name = re.fullmatch(r'(?:Documentation/)?([\w-]+)\.rst', literal.astext())
        target = name and name[1].lower()
        if target in app.env.found_docs and target != docname:
            link = nodes.reference(refuri=app.builder.get_relative_uri(docname, target))
            literal.replace_self(link)
            link += literal


def setup(app):
    app.connect('doctree-resolved', link_documents)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
