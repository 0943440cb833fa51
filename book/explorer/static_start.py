"""Draw the initial state of explorers at build time, by running their own script in V8, for readers without scripts."""

import html
import json
import re
from functools import cache

from book import stored

# A stub of the DOM, as much as the explorers' runtime uses. Nodes are created on demand.
PAGE = r"""
class Node {
  constructor(name) {
    this.nodeName = name; this.children = []; this.attributes = {}; this.own = ""; this.listeners = {};
    this.classList = { toggle: (name, on) => { this.className = on ? name : ""; } };
  }
  setAttribute(key, value) { this.attributes[key] = String(value); }
  getAttribute(key) { return key in this.attributes ? this.attributes[key] : null; }
  appendChild(child) { this.children.push(child); return child; }
  append(...parts) {
    const node = (p) => (typeof p === "string" ? Object.assign(new Node("#text"), { own: p }) : p);
    this.children.push(...parts.map(node));
  }
  replaceChildren() { this.children = []; }
  addEventListener(kind, call) { this.listeners[kind] = call; }
  set textContent(text) { this.own = String(text); this.children = []; }
  get textContent() { return this.own + this.children.map((c) => c.textContent).join(""); }
}
const made = {}, window = { addEventListener: () => {} };
const rootOf = (id) => {
  const root = new Node("root");
  root.querySelector = (selector) => {
    const whole = selector.slice(1), part = whole.replace(/^ex-[0-9a-f]+-/, ""), key = NAMED(whole, part);
    if (key in made) return made[key];
    const node = (made[key] = Object.assign(new Node(part), CONTROLS[key]));
    node.setAttribute("data-key", part.replace(/-n$/, ""));
    return node;
  };
  return root;
};
let root;
const document = {
  getElementById: (id) => (root = rootOf(id)),
  createElement: (n) => new Node(n), createElementNS: (_, n) => new Node(n),
};
let atFrame = (f) => f();
const location = { hash: HASH }, requestAnimationFrame = (f) => atFrame(f);
globalThis.setTimeout = () => 0;
const history = { replaceState: (a, b, hash) => { location.hash = hash; } };
"""

SCRIPT = re.compile(r"(?s)<script>((?:(?:window|globalThis)\.inferlib|inferlibExplorer\().*?)</script>")
SELECT = re.compile(r'(?s)<select id="([^"]+)"[^>]*>(.*?)</select>')
OPTION = re.compile(r"(?s)<option[^>]*>(.*?)</option>")
# Elements that the script fills: pictures, totals, cells of tables.
EMPTY = re.compile(r'(<(svg|b|td|em)\b[^>]*\bid="(ex-[0-9a-f]+-[^"]+)"[^>]*>)(?=</\2>)')
WRITTEN = """
const safe = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;");
const attributes = (node) => Object.entries(node.attributes).map(([k, v]) => ` ${k}="${safe(v)}"`).join("");
const inside = (node) => safe(node.own) + node.children.map(written).join("");
const written = (node) => `<${node.nodeName}${attributes(node)}>${inside(node)}</${node.nodeName}>`;
JSON.stringify(Object.fromEntries(Object.entries(made).map(([key, node]) => [key, inside(node)])))
"""


def static_page(controls, *, hash="", named="part"):
    """Return the JavaScript stub of the DOM: controls by id, the address, and whether ids are whole or parts."""
    start = PAGE.replace("CONTROLS", json.dumps(controls)).replace("HASH", json.dumps(hash))
    return start.replace("NAMED(whole, part)", named)


def draw_static(body):
    """Fill the explorers' pictures and numbers in a page's HTML with their initial state."""
    scripts = SCRIPT.findall(body)
    if not any(script.startswith("inferlibExplorer(") for script in scripts):
        return body
    from py_mini_racer import MiniRacer

    controls = {
        name: {"options": [{"text": html.unescape(text)} for text in OPTION.findall(options)]}
        for name, options in SELECT.findall(body)
    }
    engine = MiniRacer()
    engine.eval(static_page(controls, named="whole"))
    for script in scripts:
        if "inferlibGuess" not in script:
            engine.eval(script.replace("inferlibExplorer(", "window.inferlibExplorer(") + ";0")
    found = json.loads(engine.eval(WRITTEN))

    def filled(match):
        opened, name, key = match.groups()
        if name != "svg":
            return opened + found.get(key, "")
        return opened.replace("<svg", '<svg font-size="12"', 1) + paint_svg(found.get(key, ""))

    return EMPTY.sub(filled, body)


# Lines of JavaScript without strings and regular expressions, and blanks in them that have no meaning.
CODE = re.compile(r"""^(?!.*\$\{)[^"'`/\\\n]+$""", re.MULTILINE)
BLANKS = re.compile(r" ?([,{}?:*<>=;()]) ?")


@cache
def script(room, name):
    """Return a script or style sheet of a package of the book, minified: no comments, indentation or spare blanks."""
    text = re.sub(r"^\s+|\s*(^|\s)//\s.*$", "", stored.text(f"{room}/{name}"), flags=re.MULTILINE)
    text = re.sub(r"\n+", "\n", re.sub(r" (=>|[=!]==|&&|\|\||[<>]=|=(?= [\w(\[{])) ", r"\1", text)).strip()
    return CODE.sub(lambda line: BLANKS.sub(r"\1", line[0]), text) if name.endswith(".js") else text


CLASSED = re.compile(r'<\w+[^<>]* class="([^"]*)"[^<>/]*')
FINE = re.compile(r'(?<==")-?\d+\.\d{3,}(?=")')
RULE = re.compile(r"(?<!\] )\.inferlib-explorer (\.\w+|:is\([^)]*\))\{((?:--c|fill|stroke)[^}]*)\}")


@cache
def paints():
    """Return the CSS properties of each class in a picture, read from the style sheet."""
    sheet, found = stored.text("explorer/explorer.css"), {}
    for names, rules in RULE.findall(sheet):
        for name in re.findall(r"\.(\w+)", names):
            found.setdefault(name, {}).update(rule.split(":") for rule in rules.split(";"))
    return found


def paint_svg(svg):
    """Add an SVG's styles as attributes, for readers without style sheets; a style sheet overrides them."""

    def more(match):
        said = {k: v for name in match[1].split() for k, v in paints().get(name, {}).items()}
        colour = said.pop("--c", "currentColor")
        new = (f' {k}="{v.replace("var(--c)", colour)}"' for k, v in said.items() if f" {k}=" not in match[0])
        return match[0] + "".join(new)

    # no screen shows more digits, and CPUs differ in them
    return FINE.sub(lambda n: f"{float(n[0]):.2f}", CLASSED.sub(more, svg))
