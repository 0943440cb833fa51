// What the scripts of all pages share: numbers in words, text that cannot leave its place, axes, links.
globalThis.inferlibShared = (() => {
  "use strict";
  // Numbers for people, as the library prints them.
  const digits = (v) => {
    if (v == null || !Number.isFinite(v)) return "n/a";
    const size = Math.abs(v);
    if (v === 0) return "0";
    if (size >= 1e7 || size < 1e-3) return v.toExponential(2).replace("e+", "e");
    return size >= 1000 ? Math.round(v).toLocaleString("en-US") : String(+v.toPrecision(3));
  };
  const esc = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const total = (list, of = Number) => list.reduce((sum, one) => sum + of(one), 0);
  // Powers of ten, with steps in between where these are few.
  const decades = (low, high) => {
    const at = (steps) => {
      const found = [];
      for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++)
        found.push(...steps.map((m) => +`${m}e${e}`));
      return found.filter((v) => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9));
    };
    return [[1], [1, 2, 5]].map(at).find((found) => found.length > 2) || at([1, 1.5, 2, 3, 4, 5, 7]);
  };
  const scale = (low, high, from, to, log) => (v) =>
    from + (to - from) * (log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low));
  // Stages add; within a stage the longest group of terms counts, and the others are hidden behind it.
  const staged = ({ names, stages, at }, raw) => {
    const terms = names.map((name, k) => ({ name, seconds: raw[at + k], counts: false }));
    let value = 0, k = 0;
    for (const sizes of stages) {
      const groups = sizes.map((n) => terms.slice(k, (k += n)));
      const sums = groups.map((group) => total(group, (t) => t.seconds)), most = Math.max(...sums);
      groups[Math.max(sums.indexOf(most), 0)].forEach((t) => { t.counts = true; });
      value += most;
    }
    return { value, terms };
  };
  const tick = (v) => (v >= 1e6 && v < 1e9 ? digits(v / 1e6) + "M" : v >= 1e4 && v < 1e6
    ? digits(v / 1e3) + "K" : digits(v));
  // A drawing on two logarithmic axes, as text: its grid, and what draw(X, Y) adds.
  const plane = ({ L, R, T, B }, x, y, draw) => {
    const X = scale(x.low, x.high, L, R, true), Y = scale(y.low, y.high, B, T, true);
    const text = (x, y, anchor, t, more = "") =>
      `<text x="${x.toFixed()}" y="${y.toFixed()}" text-anchor="${anchor}"${more}>${esc(t)}</text>`;
    const line = (d) => `<path class="grid" d="${d}"/>`, middle = (T + B) / 2;
    const grid = [
      ...decades(x.low, x.high).map((v) => line(`M${X(v).toFixed()} ${T}V${B}`) + text(X(v), B + 15, "middle",
        tick(v))),
      ...decades(y.low, y.high).map((v) => line(`M${L} ${Y(v).toFixed()}H${R}`) + text(L - 5, Y(v) + 4, "end",
        tick(v))),
    ];
    return grid.join("") + text((L + R) / 2, B + 34, "middle", x.label)
      + text(12, middle, "middle", y.label, ` transform="rotate(-90 12 ${middle})"`) + draw(X, Y);
  };

  // So many changes as come between two frames are drawn once.
  const once = (draw) => {
    let waiting = false;
    return (besides) => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; draw(besides); });
    };
  };
  // What was copied is said on the button for a while.
  const copy = (text, button) => {
    const before = button.textContent, brief = (said) => () => {
      button.textContent = said;
      setTimeout(() => { button.textContent = before; }, 2500);
    };
    if (!navigator.clipboard) brief("see the address")();
    else navigator.clipboard.writeText(text).then(brief("copied"), brief("see the address"));
  };
  // Names and values of a link to a box, and whether one cannot be read; null for the link of another.
  const pairsOf = (hash, slug) => {
    const [name, pairs] = (hash || "").replace(/^#/, "").split("?");
    return name !== slug || !pairs ? null : pairs.split("&").map((pair) => {
      const [key, ...value] = pair.split("=");
      try { return [key, value.join("=")].map(decodeURIComponent); } catch { return [pair, "", true]; }
    });
  };
  // The address holds the state of a box: once a reader asks for that, or came by a link, it follows moves.
  const addressed = (link) => {
    let held = false;
    const hold = () => {
      try { history.replaceState(null, "", link()); held = true; } catch { held = false; }
    };
    const open = (root, follow, draw) => {
      held = follow(location.hash);
      draw();
      if (held) window.addEventListener("load", () => root.scrollIntoView());
      const arrive = () => {
        if (!follow(location.hash)) return;
        held = true;
        draw();
        root.scrollIntoView({ block: "start", behavior: "smooth" });
      };
      window.addEventListener("hashchange", arrive);
      return arrive;
    };
    return { hold, open, moved: () => { if (held) hold(); } };
  };
  return { digits, esc, total, tick, decades, scale, staged, plane, once, copy, pairsOf, addressed };
})();
