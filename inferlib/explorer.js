(function (C) {
  "use strict";
  const root = document.getElementById(C.id);
  const find = (selector) => root.querySelector(selector);
  const outputs = C.outputs;
  const picture = find("svg"), readout = find(".readout");
  const W = 600, H = C.stages ? 90 : 300, LEFT = C.stages ? 8 : 66, RIGHT = 12, TOP = 10, BOTTOM = C.stages ? 34 : 46;

  const digits = (v) => {
    if (v === 0) return "0";
    const size = Math.abs(v);
    if (size >= 1e6 || size < 1e-3) return v.toExponential(2).replace("e+", "e");
    return size >= 1000 ? Math.round(v).toLocaleString("en-US") : String(+v.toPrecision(3));
  };
  const put = (parent, name, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    parent.appendChild(element);
    return element;
  };

  // The numbers under the picture: name, value, remark, and the colour of its curve or bar.
  const tell = (entries) => {
    readout.textContent = "";
    entries.forEach(([name, value, remark, colour]) => {
      const entry = document.createElement("span"), number = document.createElement("b");
      if (colour !== undefined) entry.appendChild(document.createElement("i")).className = "c" + colour;
      entry.appendChild(document.createTextNode(name + " "));
      number.textContent = digits(value);
      entry.appendChild(number);
      entry.appendChild(document.createTextNode(" " + C.unit + remark));
      readout.appendChild(entry);
    });
  };

  // The state of the controls, as the arguments of the outputs: sliders hold a number, choices an option.
  const state = () => {
    const values = {};
    C.sliders.forEach((s) => {
      const control = find("#" + C.id + "-" + s.key);
      const raw = +control.value, step = +control.step || 0;
      // the browser rounds the start to a step: until the thumb moves, the start itself counts
      const untouched = Math.abs(raw - control.defaultValue) <= 0.51 * step;
      const value = untouched ? s.start : s.log ? Math.pow(10, raw) : raw;
      values[s.key] = s.whole ? Math.round(value) : value;
    });
    C.choices.forEach((c) => {
      const option = find("#" + C.id + "-" + c.key).selectedIndex;
      for (const key in c.columns) values[key] = c.columns[key][option];
    });
    return values;
  };
  const evaluate = (values) => outputs(...C.args.map((key) => values[key]));

  const ticks = (low, high, log) => {
    const found = [];
    if (log) {
      for (let e = Math.ceil(Math.log10(low) - 1e-9); e <= Math.log10(high) + 1e-9; e++) found.push(Math.pow(10, e));
      const decades = found.length ? [found[0] / 10, ...found] : [Math.pow(10, Math.floor(Math.log10(low)))];
      if (found.length < 3) [2, 5].forEach((m) => decades.forEach((t) => {
        if (t * m >= low && t * m <= high) found.push(t * m);
      }));
      return found.sort((a, b) => a - b);
    }
    const rough = Math.pow(10, Math.floor(Math.log10((high - low) / 4)));
    const step = rough * [1, 2, 5, 10].find((m) => (high - low) / (rough * m) <= 6);
    for (let t = Math.ceil(low / step) * step; t <= high + 1e-9 * step; t += step) found.push(t);
    return found;
  };
  const scale = (low, high, from, to, log) => (v) =>
    from + (to - from) * (log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low));

  function drawCurves(values) {
    const x = C.sliders.find((s) => s.key === C.x);
    const at = (i) => (x.log ? x.low * Math.pow(x.high / x.low, i / 160) : x.low + ((x.high - x.low) * i) / 160);
    const points = Array.from({ length: 161 }, (_, i) => {
      const here = at(i);
      return [here, evaluate(Object.assign({}, values, { [C.x]: here }))];
    });
    const good = points.flatMap((p) => p[1]).filter((v) => Number.isFinite(v) && (!C.logY || v > 0));
    let low = Math.min(...good), high = Math.max(...good);
    if (!C.logY) { low = Math.min(0, low); high = high > low ? high * 1.05 : low + 1; }
    else { low /= 1.15; high *= 1.15; }
    const X = scale(x.low, x.high, LEFT, W - RIGHT, x.log), Y = scale(low, high, H - BOTTOM, TOP, C.logY);
    ticks(x.low, x.high, x.log).forEach((t) => {
      put(picture, "line", { x1: X(t), x2: X(t), y1: TOP, y2: H - BOTTOM, class: "grid" });
      put(picture, "text", { x: X(t), y: H - BOTTOM + 16, "text-anchor": "middle" }, digits(t));
    });
    ticks(low, high, C.logY).forEach((t) => {
      put(picture, "line", { x1: LEFT, x2: W - RIGHT, y1: Y(t), y2: Y(t), class: "grid" });
      put(picture, "text", { x: LEFT - 6, y: Y(t) + 4, "text-anchor": "end" }, digits(t));
    });
    put(picture, "text", { x: (LEFT + W - RIGHT) / 2, y: H - 8, "text-anchor": "middle" }, x.label);
    put(picture, "text", { transform: "translate(14 " + (TOP + H - BOTTOM) / 2 + ") rotate(-90)", "text-anchor": "middle" }, C.yLabel);
    const inside = (v) => Number.isFinite(v) && (!C.logY || v > 0);
    C.names.forEach((name, k) => {
      let pen = false, d = "";
      points.forEach(([px, ys]) => {
        if (inside(ys[k])) d += (pen ? "L" : "M") + X(px).toFixed(1) + " " + Y(ys[k]).toFixed(1);
        pen = inside(ys[k]);
      });
      put(picture, "path", { d: d, class: "curve c" + k });
    });
    const here = values[C.x], now = evaluate(values);
    put(picture, "line", { x1: X(here), x2: X(here), y1: TOP, y2: H - BOTTOM, class: "now" });
    now.forEach((v, k) => inside(v) && put(picture, "circle", { cx: X(here), cy: Y(v), r: 4, class: "dot c" + k }));
    tell(C.names.map((name, k) => [name, now[k], "", k]));
  }

  function drawBars(values) {
    const terms = evaluate(values), counted = [];
    let total = 0, k = 0;
    C.stages.forEach((groups) => {
      let longest = [], most = -1;
      groups.forEach((n) => {
        const members = Array.from({ length: n }, (_, i) => k + i);
        const sum = members.reduce((s, i) => s + terms[i], 0);
        if (sum > most) { longest = members; most = sum; }
        k += n;
      });
      counted.push(...longest);
      total += most;
    });
    const X = scale(0, total * 1.02, LEFT, W - RIGHT, false);
    let left = 0;
    counted.forEach((i) => {
      put(picture, "rect", { x: X(left), y: TOP, width: Math.max(X(left + terms[i]) - X(left), 0), height: H - TOP - BOTTOM, class: "bar c" + i });
      left += terms[i];
    });
    ticks(0, total * 1.02, false).forEach((t) => {
      put(picture, "line", { x1: X(t), x2: X(t), y1: H - BOTTOM, y2: H - BOTTOM + 5, class: "grid" });
      put(picture, "text", { x: X(t), y: H - BOTTOM + 18, "text-anchor": t === 0 ? "start" : "middle" }, digits(t));
    });
    const named = C.names.map((name, i) => [name, terms[i], counted.includes(i) ? "" : " (hidden)", i]);
    tell([...named, ["total", total, ""]]);
  }

  function draw() {
    const values = state();
    C.sliders.forEach((s) => { find("output[for='" + C.id + "-" + s.key + "']").textContent = digits(values[s.key]) + (s.unit ? " " + s.unit : ""); });
    while (picture.lastChild && picture.lastChild.nodeName !== "title") picture.removeChild(picture.lastChild);
    (C.stages ? drawBars : drawCurves)(values);
  }
  let waiting = false;
  root.addEventListener("input", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  });
  draw();
})
