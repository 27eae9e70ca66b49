"""SVG that matplotlib drew, made fit to stand in a page: in the page's own colours, under a policy that allows no styles but its own."""

from __future__ import annotations

from typing import Final
from xml.etree import ElementTree

from markupsafe import Markup

from longspan.simulator.report.figures import INK

__all__ = ["inline_svg"]

LEFT_OUT: Final = ("metadata", "style")
"""Elements that a page does not need: who drew it, and a style of two lines that stands as attributes instead."""


def inline_svg(drawn: bytes, name: str, title: str) -> Markup:
    """An SVG file's content as an element of a page. `name` keeps its ids apart from those of other figures, `title` is its name
    for those who do not see it.

    Styles become attributes, which the page's policy lets pass; what is drawn in ink takes the colour of the text around it.
    Comments, which hold the texts of labels, are left out. What stays of texts is their outlines.
    """
    root = ElementTree.fromstring(drawn)  # noqa: S314 - what matplotlib wrote a moment ago
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in LEFT_OUT:
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = _attributes(element.attrib, name)
    box = root.attrib["viewBox"]
    line = {"stroke-linejoin": "round", "stroke-linecap": "butt"}
    root.attrib = {"viewBox": box, "width": f"{box.split()[2]}pt"} | line | {"role": "img", "aria-label": title, "class": "drawn"}
    return Markup(ElementTree.tostring(root, encoding="unicode"))  # noqa: S704 - serialised, so escaped


def _attributes(given: dict[str, str], name: str) -> dict[str, str]:
    """An element's attributes, its style's declarations among them."""
    made: dict[str, str] = {}
    for qualified, value in given.items():
        key = qualified.rpartition("}")[2]
        if key == "style":
            pairs = (declaration.partition(":") for declaration in value.split(";") if declaration.strip())
            made |= {property.strip(): _value(setting.strip(), name) for property, _, setting in pairs}
        elif key == "id":
            made["id"] = f"{name}-{value}"
        elif key == "href":
            made["href"] = value.replace("#", f"#{name}-", 1)
        else:
            made[key] = _value(value, name)
    return made


def _value(value: str, name: str) -> str:
    return value.replace("url(#", f"url(#{name}-").replace(INK, "currentColor")
