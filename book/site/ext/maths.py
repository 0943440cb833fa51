"""Sphinx extension: typeset equations as MathML at build time, so that pages need no script."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from docutils import nodes

NAMESPACE = ' xmlns="http://www.w3.org/1998/Math/MathML"'
TAG = re.compile(r"\s*\\tag\{([^}]*)\}")
WIDE = 60  # letters of an equation above which it may have to scroll; it can then take the keyboard focus
FRAME = re.compile(r"\\(?:begin|end)\{equation\*?\}")


def typeset(text, display=False):
    """Return LaTeX as MathML, without redundant groups.

    Examples
    --------
    >>> typeset("x_{1}")
    '<math display="inline"><msub><mi>x</mi><mn>1</mn></msub></math>'
    """
    from latex2mathml.converter import convert

    # the converter breaks no lines of "gathered"; a matrix of one column looks the same
    lines = text.replace("{gathered}", "{matrix}")
    made = convert(FRAME.sub("", lines), display="block" if display else "inline")
    tree = lean(ElementTree.fromstring(made.replace(NAMESPACE, "")))
    if lines != text:
        tree.find(".//mtable").set("displaystyle", "true")
    return ElementTree.tostring(tree, encoding="unicode")


def lean(element):
    """Replace groups with a single child by that child, in a MathML element."""
    for i, part in enumerate(element):
        part = lean(part)
        if (
            part.tag == "munder" and part[1].text == "\u23df"
        ):  # no font stretches it, so the style sheet draws it
            part = part[0]
            part.set("class", "brace")
        if part.get("stretchy") == "true" or part.get("width") == "0.167em":
            part.attrib.clear()  # brackets stretch anyway, and the style sheet sets the space between factors
        while part.tag == "mrow" and len(part) == 1:
            part = part[0]
        element[i] = part
    return element


def visitor(display):
    """Return a visitor that writes an equation with its number."""

    def visit(self, node):
        from sphinx.util.math import get_node_equation_number

        text = node.astext()
        number = TAG.search(text)
        number = number[1] if number else node.get("number") and get_node_equation_number(self, node)
        tag = "div" if display else "span"
        made = typeset(TAG.sub("", text), display)
        wide = display and len(re.sub(r"<[^>]*>|\s", "", made)) > WIDE
        self.body.append(self.starttag(node, tag, "", CLASS="math", **({"tabindex": "0"} if wide else {})))
        self.body.append(f'<span class="eqno">({number})</span>' if display and number else "")
        self.body.append(f"{made}</{tag}>")
        raise nodes.SkipNode

    return visit


def setup(app):
    app.add_html_math_renderer("mathml", (visitor(False), None), (visitor(True), None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
