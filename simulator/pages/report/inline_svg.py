"""matplotlib's SVG adapted to a page: it uses the page's colours, and no inline styles, which the page's policy forbids."""

from __future__ import annotations

from typing import Final
from xml.etree import ElementTree

from markupsafe import Markup

from longspan.simulator.pages.report.figures import INK

__all__ = ["inline_svg"]

DROPPED_TAGS: Final = ("metadata", "style")
"""Elements that a page does not need. The style element has only two lines, which become attributes."""


def inline_svg(drawn: bytes, name: str, title: str) -> Markup:
    """Return an SVG file's content as an element of a page.

    `name` is a prefix that makes ids unique on the page. `title` is the label for screen readers.

    Styles become attributes, which the page's policy allows. The colour `INK` becomes the page's text colour. Comments with the text of
    labels are dropped, since labels are drawn as outlines.
    """
    root = ElementTree.fromstring(drawn)  # noqa: S314 - matplotlib has just written it
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in DROPPED_TAGS:
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = _attributes(element.attrib, name)
    box = root.attrib["viewBox"]
    line = {"stroke-linejoin": "round", "stroke-linecap": "butt"}
    root.attrib = {"viewBox": box, "width": f"{box.split()[2]}pt"} | line | {"role": "img", "aria-label": title, "class": "drawn"}
    return Markup(ElementTree.tostring(root, encoding="unicode"))  # noqa: S704 - serialised, so escaped


def _attributes(given: dict[str, str], name: str) -> dict[str, str]:
    """Return an element's attributes, with the declarations of its style turned into attributes."""
    attributes: dict[str, str] = {}
    for qualified, value in given.items():
        key = qualified.rpartition("}")[2]
        if key == "style":
            pairs = (declaration.partition(":") for declaration in value.split(";") if declaration.strip())
            attributes |= {property.strip(): _value(setting.strip(), name) for property, _, setting in pairs}
        elif key == "id":
            attributes["id"] = f"{name}-{value}"
        elif key == "href":
            attributes["href"] = value.replace("#", f"#{name}-", 1)
        else:
            attributes[key] = _value(value, name)
    return attributes


def _value(value: str, name: str) -> str:
    return value.replace("url(#", f"url(#{name}-").replace(INK, "currentColor")
