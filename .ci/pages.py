"""Visit every page of the built book in a browser and fail on anything that would trouble a reader.

Each page is opened on a wide screen, in both themes, and on a phone in the dark theme. Checked: no console errors, no
requests to other hosts or failed requests, rendered equations, nothing wider than the phone, loaded images with text
and reserved space, no overlapping labels in drawings, unique ids, keyboard access to scrolling equations, a content
security policy, page weight, explorers of constant height and quick redraws, no serious accessibility fault reported by
axe. One page is also opened as a file, without a server. On the calculator every control is set in turn, and every part
must agree with the question in the form.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import axe_playwright_python
from playwright.sync_api import Error, sync_playwright

# Width, height, and the themes in which a page is checked; it loads in the first.
SCREENS = {
    "desktop": (1280, 900, "light", "dark"),
    "phone": (390, 844, "dark"),
    "projector": (1920, 1080, "light", "dark"),
}
# Nothing here may reach the network; Chromium contacts its maker by default.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
# Bytes that a browser may load to open a page, uncompressed and without figures.
HEAVIEST = 1_000_000
MOST = 25_000  # elements of a page that a slow machine draws in two seconds
# The README's image: the calculator's answer to one question.
PICTURE = Path(__file__).resolve().parents[1] / "book" / "site" / "static" / "calculator.png"
QUESTION = (
    "mode=step&model=Llama%203.3%2070B&machine=4x%20H100%20SXM&weights=fp8&batch=32&context=8k&goal=15%20ms"
)
# Faults in what the theme, docutils and pandas write: axe's rule to the affected elements.
NOT_OURS = {"aria-required-children": ("citation-list",)}
REDRAWS = []

# Figures further down load when the reader comes near; here they load all at once.
LOAD = """async () => {
  const images = [...document.querySelectorAll("img")], height = document.body.scrollHeight;
  images.forEach((e) => { e.loading = "eager"; });
  await Promise.all(images.map((e) => e.decode().catch(() => {})));
  const moved = document.body.scrollHeight - height;
  // Places are whole pixels, drawings are not: half a pixel each, and what rounding the page adds.
  return Math.abs(moved) > 2 + images.length / 2 ? [`the page grows by ${moved} as its figures load`] : [];
}"""

# Choose a theme, as a reader does, without transitions.
DRESS = """(theme) => {
  document.documentElement.dataset.theme = theme;
  document.getAnimations().forEach((e) => e.cancel());
}"""

INSPECT = """() => {
  const faults = [];
  const shown = e => e.outerHTML.slice(0, 120).replace(/\\s+/g, " ");
  const scrolls = e => {
    for (let p = e.parentElement; p && p !== document.body; p = p.parentElement)
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(p).overflowX)) return true;
    return false;
  };
  const drawn = (e) => e && (e.getBoundingClientRect().width || !e.closest(".math").getClientRects().length);
  for (const e of document.querySelectorAll(".math"))
    if (!drawn(e.querySelector("math > *")) || e.querySelector("merror"))
      faults.push("equation not rendered: " + shown(e));
  for (const e of document.querySelectorAll("img")) {
    if (!e.naturalWidth) faults.push("image not loaded: " + shown(e));
    if (!(e.alt || "").trim()) faults.push("image without alt text: " + shown(e));
  }
  if (!document.querySelector("meta[http-equiv='Content-Security-Policy']"))
    faults.push("nothing keeps the page from asking other hosts");
  const names = new Set();
  for (const { id } of document.querySelectorAll("[id]")) {
    if (names.has(id)) faults.push("two elements are called " + id);
    names.add(id);
  }
  for (const e of innerWidth > 640 ? document.querySelectorAll("div.math") : [])
    if (e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0) faults.push("no key scrolls: " + shown(e));
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width)
    faults.push("page is " + document.documentElement.scrollWidth + " wide on a screen of " + width);
  const article = document.querySelector("article");
  for (const e of article ? article.querySelectorAll("*") : []) {
    const box = e.getBoundingClientRect();
    if (box.width && box.right > width + 1 && !scrolls(e)) { faults.push("too wide: " + shown(e)); break; }
  }
  return faults;
}"""


# Pairs of labels in one drawing that cover more than a fifth of each other; boxes of lines of text may touch.
# Matplotlib writes a label as a group of glyphs, after a comment with its text.
CROWDED = """window.crowded = (svg, where = svg.closest("[id]")?.id) => {
  const said = (e) => [...e.childNodes].find((n) => n.nodeType === 8)?.data.trim() || e.textContent.trim() || e.id;
  const labels = [...svg.querySelectorAll("text, g[id^='text_']")]
    .filter((e) => !e.parentElement.closest("g[id^='text_']"))
    .map((e) => [said(e), e.getBoundingClientRect()]).filter(([, box]) => box.width > 1 && box.height > 1);
  return labels.flatMap(([one, a], i) => labels.slice(i + 1).filter(([, b]) => {
    const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    return width > 0 && height > 0 && width * height > Math.min(a.width * a.height, b.width * b.height) / 5;
  }).map(([other]) => `labels on one another in ${where}: ${one} | ${other}`));
};"""

# Drawings in the page, and images, which are inserted into it to be measured.
OVERLAPS = """async (pictures) => {
  const faults = [...document.querySelectorAll("article svg")].flatMap((svg) => window.crowded(svg));
  const room = document.body.appendChild(document.createElement("div"));
  for (const e of pictures ? document.querySelectorAll("article img[src$='.svg']") : []) {
    const text = await (await fetch(e.src)).text();
    room.innerHTML = text.slice(text.indexOf("<svg"));
    faults.push(...window.crowded(room.firstChild, e.closest("figure[id]")?.id || e.alt));
  }
  room.remove();
  return faults;
}"""


# Records the height of each explorer before and after its script, and keeps the script's result.
WATCH = """(() => {
  let runtime;
  window.explorers = [];
  Object.defineProperty(window, "inferlibExplorer", {
    set: (f) => { runtime = f; },
    get: () => runtime && ((C) => {
      const box = document.getElementById(C.id), before = box.offsetHeight, api = runtime(C);
      window.explorers.push({ C, box, api, before, after: box.offsetHeight });
      return api;
    }),
  });
})()"""

# Moves every slider of every explorer through its range: heights must not change, and redraws must be quick.
PLAY = """() => {
  const faults = [];
  const times = [];
  for (const { C, box, api, before, after } of window.explorers) {
    const name = C.slug, height = box.offsetHeight;
    if (Math.abs(after - before) > 2) faults.push(`explorer ${name} starts ${before} high and becomes ${after}`);
    for (const i of C.inputs.filter((i) => i.kind === "slider")) {
      for (const value of [i.low, i.high, i.start]) {
        const start = performance.now();
        api.set(i.key, value);
        times.push(performance.now() - start);
        faults.push(...[...box.querySelectorAll("svg")].flatMap((svg) => window.crowded(svg)));
        if (Math.abs(box.offsetHeight - height) > 2) {
          faults.push(`explorer ${name} changes from ${height} to ${box.offsetHeight} high: ${i.key} = ${value}`);
          api.set(i.key, i.start);
          break;
        }
      }
    }
  }
  const asked = window.inferlibAsked;
  for (const value of asked ? [1, 2, 8, 30, 64, 200, 1000, 4000, 32] : []) {
    times.push(asked.set("batch", value));
    if (/NaN|undefined|Infinity/.test(document.querySelector(".ask").textContent))
      faults.push(`the instrument shows no number for batch ${value}`);
  }
  // The middle one: a busy machine makes any single redraw slow.
  const usual = times.sort((a, b) => a - b)[times.length >> 1] || 0;
  if (usual > 150) faults.push(`a redraw of an explorer takes ${Math.round(usual)} ms`);
  return [faults, usual];
}"""

# Below an explorer that can ask the kernel model, the answer must follow a move; its functions are fetched for the
# first one. Also returns the links to the same questions in the calculator.
ASKED = """async () => {
  const faults = [], links = [];
  for (const { C, box, api } of window.explorers.filter(({ C }) => C.asks && window.inferlibBeside)) {
    const line = box.querySelector(".asked"), i = C.inputs.find((i) => i.key === C.asks.batch.split(" ")[0]);
    api.set(i.key, i.low);
    for (let k = 0; k < 100 && !line.textContent; k++) await new Promise((done) => setTimeout(done, 100));
    if (!/kernel model says \\d/.test(line.textContent)) faults.push(`below ${C.slug} stands "${line.textContent}"`);
    links.push(line.querySelector("a").href);
    api.set(i.key, i.start);
  }
  return [faults, links];
}"""

# The calculator must answer the question of a link.
ANSWERED = """(link) => document.querySelector(".ask .big") ? []
  : [`${link} is not answered: ${document.querySelector(".ask .head").textContent}`]"""

# Every state of the calculator that its menus, sliders, fields and links lead to.
WALK = (Path(__file__).parent / "walk.js").read_text("utf-8")
WALK = WALK[WALK.index("async () =>") :]

# The audit takes a millisecond per element, so only some of many similar rows and code tokens are checked. Only
# contrast depends on the theme.
AUDIT = """async (theme) => {
  const rules = { "label-content-name-mismatch": { enabled: true } };
  const only = theme === "dark" ? { runOnly: ["color-contrast"] } : { rules };
  const alike = "math > *, tbody tr:nth-child(n + 6), .highlight span:nth-child(n + 30)";
  document.querySelectorAll(alike).forEach((e) => e.remove());
  const options = { resultTypes: ["violations"], preload: false, ...only };
  const found = await axe.run(document, options);
  return found.violations.filter((v) => ["serious", "critical"].includes(v.impact)).flatMap((v) =>
    v.nodes.map((n) => [v.id, n.target.join(" "), n.html.replace(/\\s+/g, " ").slice(0, 160)]));
}"""


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Print no line per request, which would hide the faults."""


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Ignore a browser that leaves a page while it loads."""


LEFT = "net::ERR_ABORTED"  # for example an icon still loading when the page was reopened


def serve(root):
    """Serve the built book from a thread of this process; return its address."""
    handler = functools.partial(Handler, directory=root)
    server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def visit(browser, base, page_name, size, pictures=None):
    """Open one page and return its faults."""
    width, height, first, *others = SCREENS[size]
    faults, answers = [], []
    weighed = size == "desktop" and base.startswith("http")  # slide decks may be heavy
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=first)
    page = context.new_page()
    page.on("console", lambda m: faults.append(f"console: {m.text}") if m.type == "error" else None)
    page.on("pageerror", lambda e: faults.append(f"script error: {e}"))
    page.on("requestfailed", lambda r: None if r.failure == LEFT else faults.append(f"failed: {r.url}"))
    page.on("response", lambda r: faults.append(f"status {r.status}: {r.url}") if r.status >= 400 else None)

    def only_own(route):
        url = route.request.url
        if url.startswith((base, "data:", "blob:")):
            return route.continue_()
        faults.append(f"asks another host: {url}")
        return route.abort()

    context.route("**/*", only_own)
    page.add_init_script(WATCH)
    page.add_init_script(CROWDED)
    page.on("response", lambda answer: answers.append(answer))
    try:
        # a slow page load on a busy machine is not a fault
        page.goto(base + page_name, wait_until="load", timeout=120_000)
        faults += too_heavy(page, answers if weighed else ())
        faults += page.evaluate(LOAD)
        if page.evaluate("document.documentElement.dataset.theme") != first:
            faults.append(f"does not start in {first}")
        faults += page.evaluate(OVERLAPS, weighed)
        shifts, usual = page.evaluate(PLAY)
        asked, links = page.evaluate(ASKED)
        faults += shifts + asked
        REDRAWS.append(usual)
        for theme in (first, *others):
            page.evaluate(DRESS, theme)
            faults += page.evaluate(INSPECT)
            if pictures:
                page.screenshot(path=pictures / f"{Path(page_name).stem}-{theme}-{size}.png", full_page=True)
        if others:
            faults += inaccessible(page, (*others, first))
        for link in links if weighed else ():
            page.goto(link, wait_until="load", timeout=120_000)
            faults += page.evaluate(ANSWERED, link)
        if weighed and page_name == "book/calculator.html":
            faults += walk_calculator(page, base + page_name, pictures)
    except Error as error:
        faults.append(f"could not be inspected: {error}")
    context.close()
    return faults


def too_heavy(page, answers):
    """Say whether a page loads too many bytes, or has too many elements."""
    # whether a lazy figure loads in time depends on the machine
    loaded = [answer for answer in answers if answer.ok and answer.request.resource_type != "image"]
    weight = sum(len(answer.body()) for answer in loaded)
    elements = page.evaluate("document.querySelectorAll('*').length")
    found = [f"weighs {weight / 1e6:.3f} MB"] if weight > HEAVIEST else []
    return found + ([f"has {elements} elements"] if elements > MOST else [])


def inaccessible(page, themes):
    """Return what axe finds serious in each theme; the page is in the last of them afterwards."""
    page.evaluate(AXE)
    faults = []
    for theme in themes:
        page.evaluate(DRESS, theme)
        for rule, target, html in page.evaluate(AUDIT, theme):
            if not any(part in target + html for part in NOT_OURS.get(rule, ())):
                faults.append(f"axe, {theme}: {rule}: {target}: {html}")
    return faults


def walk_calculator(page, address, pictures):
    """Return the faults of all states of the calculator; with ``pictures``, draw the README's picture of it."""
    page.goto(address, wait_until="load", timeout=120_000)
    faults, states, seconds, followed = page.evaluate(WALK)
    print(f"The calculator: {states} states read in {seconds:.0f} s, {followed} links", flush=True)
    if pictures:
        page.goto(f"{address}#ask?{QUESTION}")
        page.reload()
        page.wait_for_function("document.querySelector('.ask .stack')")
        page.locator(".ask").screenshot(path=PICTURE, style=".ask{padding:.6rem;background:#fff}")
    return faults if followed else [*faults, "no link of its text asks anything"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=lambda p: Path(p).resolve())
    parser.add_argument("--browser", required=True, help="the browser's program")
    parser.add_argument("--only", default="", help="visit only pages whose name holds this text")
    parser.add_argument(
        "--screenshots", type=Path, help="write a picture of every page here, and the README's"
    )
    args = parser.parse_args()

    pages = [p.relative_to(args.root) for p in sorted(args.root.rglob("*.html"))]
    # index.html only redirects to the first page; the theme keeps templates among its static files
    pages = [p for p in pages if p.parts[0] != "_static" and str(p) != "index.html"]
    pages = [p for p in pages if args.only in p.name]
    first = next((p for p in pages if p.parent.name == "book"), pages[0])
    base = serve(args.root)
    screens = {page: ["projector"] if page.parts[0] == "slides" else ["desktop", "phone"] for page in pages}
    visits = [(base, p, size) for p in pages for size in screens[p]]
    visits.append((args.root.as_uri() + "/", first, "desktop"))
    if args.screenshots:
        args.screenshots.mkdir(parents=True, exist_ok=True)

    def tour(left):
        """Make visits with a browser of its own until none is left; return the number of visits with a fault."""
        failed = 0
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=args.browser, args=FLAGS)
            for address, name, size in left:
                faults = visit(browser, address, name.as_posix(), size, args.screenshots)
                for fault in dict.fromkeys(faults):
                    print(f"{name} ({size}, {address.split(':')[0]}): {fault}", flush=True)
                failed += bool(faults)
            browser.close()
        return failed

    browsers = min(os.cpu_count() or 1, 4)
    print(f"{len(visits)} visits to {len(pages)} pages, {browsers} at a time: a few seconds each", flush=True)
    with ThreadPoolExecutor(browsers) as pool:
        left = iter(visits)  # all browsers take visits from it
        failed = sum(pool.map(tour, [left] * browsers))
    if failed:
        sys.exit(f"{failed} of {len(visits)} visits found a fault")
    print(f"Pages: no fault found; a redraw of an explorer takes {max(REDRAWS):.0f} ms at most")


if __name__ == "__main__":
    main()
