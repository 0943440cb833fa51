// A scatter with menus: dots that link to where they come from, lines, and the point that keeps a promise.
const inferlibScatterDrawn = (C, S) => {
  const W = 640, H = 400, L = 58, R = W - 18, B = H - 44, T = 8;
  const esc = (t) => t.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const digits = (v) => (v >= 1000 ? Math.round(v).toLocaleString("en-US") : String(+v.toPrecision(3)));
  const xi = S[C.by.x] || 0, yi = S[C.by.y] || 0, X = C.x[xi], Y = C.y[yi] || C.y[0];
  const part = ({ low, high }, v) => Math.log(Math.min(Math.max(v, low), high) / low) / Math.log(high / low);
  const px = (v) => L + part(X, v) * (R - L), py = (v) => B - part(Y, v) * (B - T);
  const passes = (f, { key, any }) => !(key in f) || (any && !S[key]) || f[key] === S[key];
  const shown = ({ f }) => C.menus.every((menu) => passes(f, menu));
  const whole = (v) => v.toFixed(0);
  const text = (x, y, t, more = "") => `<text x="${whole(x)}" y="${whole(y)}" ${more}>${esc(t)}</text>`;
  const places = (points) => points.map(([x, y]) => `${px(x).toFixed(1)},${py(y).toFixed(1)}`).join(" ");
  const path = (points, more) => `<polyline points="${places(points)}" fill="none" ${more}/>`;
  const decades = [-2, -1, 0, 1, 2, 3, 4].flatMap((e) => [1, 2, 5].map((m) => +`${m}e${e}`));
  const ticks = ({ low, high }) => decades.filter((v) => v >= low && v <= high);
  let svg = "", said = "";
  for (const v of ticks(X)) {
    svg += `<path class="grid" d="M${px(v).toFixed(0)} ${T}V${B}"/>`;
    svg += text(px(v), B + 16, digits(v), 'text-anchor="middle"');
  }
  for (const v of ticks(Y)) {
    svg += `<path class="grid" d="M${L} ${py(v).toFixed(0)}H${R}"/>`;
    svg += text(L - 6, py(v) + 4, digits(v), 'text-anchor="end"');
  }
  svg += text((L + R) / 2, H - 6, X.label, 'text-anchor="middle"');
  svg += text(14, B / 2, Y.label, `text-anchor="middle" transform="rotate(-90 14 ${B / 2})"`);
  if (Y.right) svg += path([[X.low, Y.right], [X.high, Y.right]], 'stroke="currentColor"');
  const dollars = (rate) => (1e6 * C.prices[S.chip]) / 3600 / rate;
  const worth = (rate) => (yi ? rate : dollars(rate));
  if (C.lines) {
    // A point of a line: speed of one user, answered tokens per second and chip, first token, users.
    // Between numbers of users that were computed all four go along in proportion.
    const along = (a, b) => [0, 1, 2, 3, 4, 5, 6, 7].map((k) => a.map((v, i) => v * (b[i] / v) ** (k / 8)));
    const fine = (p) => p.flatMap((a, k) => (k + 1 < p.length ? along(a, p[k + 1]) : [a]));
    const all = C.lines.filter(shown).flatMap((line) => fine(line.p).map((p) => ({ line, p })));
    for (const line of C.lines.filter(shown)) {
      svg += path(line.p.map((p) => [p[0], worth(p[1])]), `class="curve c${line.c}" style="stroke-width:1"`);
      svg += text(px(line.p[0][0]) + 4, py(worth(line.p[0][1])) + 4, line.end);
    }
    let most = 0;
    const edge = [...all].sort((a, b) => b.p[0] - a.p[0]).filter(({ p }) => p[1] > most && (most = p[1]));
    const side = (power) => edge.map(({ line, p }) => [p[0] * line.w ** power, worth(p[1])]);
    svg += `<polygon points="${places([...side(1), ...side(-1).reverse()])}" class="none"/>`;
    svg += path(side(0), 'class="curve" style="stroke:currentColor"');
    svg += `<path class="now" d="M${px(S.speed).toFixed(0)} ${T}V${B}"/>`;
    const keeps = ({ w, g }, p, slow) => p[0] >= S.speed * w ** slow && p[2] * g ** slow <= S.first;
    const kept = (slow) => all.filter(({ line, p }) => keeps(line, p, slow));
    const best = (slow) => kept(slow).sort((a, b) => b.p[1] - a.p[1])[0];
    const tell = ({ line, p }, slow) => {
      const first = digits(1000 * p[2] * line.g ** slow);
      const speed = `${digits(p[0] / line.w ** slow)} tokens/s, first token after ${first} ms`;
      const paid = `$${digits(dollars(p[1]))} per million answered`;
      return `${line.name}, ${Math.round(p[3])} users: ${speed}, ${paid}`;
    };
    const one = best(0), sure = best(1);
    if (one) {
      const [x, y] = [px(one.p[0]).toFixed(1), py(worth(one.p[1])).toFixed(1)];
      svg += `<circle cx="${x}" cy="${y}" r="8" class="ring"/>`;
    }
    said = `<p>Promised: ${digits(S.speed)} tokens/s, first token within ${digits(1000 * S.first)} ms.</p>`;
    said += `<p>Kept at the estimate by ${one ? tell(one, 0) : "nothing here"}.</p>`;
    const end = sure ? `${tell(sure, 1)} (both at that end)` : "nothing here";
    said += `<p>Kept at the slow end of the interval by ${end}.</p>`;
    if (C.asks) {
      const asked = Object.entries(C.asks).map(([key, states]) => states[S[key]]);
      const promised = `token=${S.speed}%20tokens/s&first_token=${S.first}%20s`;
      const state = ["mode=decide", ...asked, promised].join("&").replace(/&/g, "&#38;");
      const page = `<a href="calculator.html#ask?${state}">The same promise in the calculator</a>`;
      said += `<p>${page}, with all layouts, or for a model of your own.</p>`;
    }
  }
  const errors = [];
  for (const dot of C.dots.filter(shown)) {
    const v = C.lines ? worth(dot.y[1]) : dot.y[yi];
    if (!(v > 0)) continue;
    errors.push(Math.abs(v - 1));
    const at = `cx="${px(dot.x[xi]).toFixed(1)}" cy="${py(v).toFixed(1)}" r="${dot.mine ? 8 : 3}"`;
    const title = `<title>${esc(dot.t)}</title>`, url = C.urls[dot.u];
    const kind = dot.mine ? "off" : `dot c${dot.c}`;
    const drawn = `<circle ${at} class="${kind}" fill-opacity=".7">${title}</circle>`;
    svg += url ? `<a href="${esc(url)}" tabindex="-1">${drawn}</a>` : drawn;
  }
  const mean = (100 * errors.reduce((a, b) => a + b, 0)) / errors.length;
  const rows = errors.length || "No";
  if (Y.right) said = `<p>${rows} rows${errors.length ? `, mean error ${whole(mean)} %` : ""}.</p>`;
  else said += `<p>${rows} public rows of this model, chip and format at these lengths.</p>`;
  svg = `<svg font-size="12" viewBox="0 0 ${W} ${H}" role="group" aria-label="${esc(C.title)}">${svg}</svg>`;
  return { svg, said };
};
if (typeof window !== "undefined") {
  window.inferlibScatter = (C) => {
    const of = (name) => document.getElementById(`${C.id}-${name}`);
    const show = () => {
      const S = {};
      for (const { key } of C.menus) S[key] = of(key).selectedIndex;
      for (const { key, unit } of C.sliders) {
        S[key] = +(10 ** of(key).value).toPrecision(2);
        of(key).nextElementSibling.textContent = `${S[key]} ${unit}`;
      }
      const drawn = inferlibScatterDrawn(C, S);
      of("picture").innerHTML = drawn.svg;
      of("said").innerHTML = drawn.said;
    };
    for (const { key } of [...C.menus, ...C.sliders]) of(key).addEventListener("input", show);
    show();
  };
}
