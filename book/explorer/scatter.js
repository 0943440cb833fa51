// A scatter with menus: dots that link to where they come from, lines, and the point that keeps a promise.
const inferlibScatterDrawn = (C, S) => {
  const { digits, esc, plane } = globalThis.inferlibShared, box = { L: 58, R: 622, T: 8, B: 356 };
  const xi = S[C.by.x] || 0, yi = S[C.by.y] || 0, x = C.x[xi], y = C.y[yi] || C.y[0];
  const passes = (one, { key, any }) => one === null || (any && !S[key]) || one === S[key];
  const shown = ({ f }) => C.menus.every((menu, k) => passes(f[k], menu));
  const dollars = (rate) => (1e6 * C.prices[S.chip]) / 3600 / rate;
  const worth = (rate) => (yi ? rate : dollars(rate)), lines = (C.lines || []).filter(shown);
  // A point of a line: speed of one user, answered tokens per second and chip, first token, users.
  // Between numbers of users that were computed all four go along in proportion.
  const along = (a, b) => [0, 1, 2, 3, 4, 5, 6, 7].map((k) => a.map((v, i) => v * (b[i] / v) ** (k / 8)));
  const fine = (p) => p.flatMap((a, k) => (k + 1 < p.length ? along(a, p[k + 1]) : [a]));
  const all = lines.flatMap((line) => fine(line.p).map((p) => ({ line, p })));
  const keeps = ({ w, g }, p, slow) => p[0] >= S.speed * w ** slow && p[2] * g ** slow <= S.first;
  const best = (slow) => all.filter(({ line, p }) => keeps(line, p, slow)).sort((a, b) => b.p[1] - a.p[1])[0];
  const dots = C.dots.filter(shown).map((dot) => ({ ...dot, v: C.lines ? worth(dot.y[1]) : dot.y[yi] }))
    .filter(({ v }) => v > 0);

  const drawn = plane(box, x, y, (X, Y) => {
    const inside = ({ low, high }, v) => Math.min(Math.max(v, low), high);
    const place = ([a, b]) => [X(inside(x, a)).toFixed(1), Y(inside(y, b)).toFixed(1)];
    const path = (points, more) => `<polyline points="${points.map(place).join(" ")}" fill="none" ${more}/>`;
    let svg = y.right ? path([[x.low, y.right], [x.high, y.right]], 'stroke="currentColor"') : "";
    for (const line of lines) {
      const points = line.p.map((p) => [p[0], worth(p[1])]), [left, top] = place(points[0]);
      svg += path(points, `class="curve c${line.c}" style="stroke-width:1"`);
      svg += `<text x="${(+left + 4).toFixed()}" y="${(+top + 4).toFixed()}">${esc(line.end)}</text>`;
    }
    if (C.lines) {
      let most = 0;
      const edge = [...all].sort((a, b) => b.p[0] - a.p[0]).filter(({ p }) => p[1] > most && (most = p[1]));
      const side = (power) => edge.map(({ line, p }) => [p[0] * line.w ** power, worth(p[1])]);
      const one = best(0), [cx, cy] = one ? place([one.p[0], worth(one.p[1])]) : [];
      svg += `<polygon points="${[...side(1), ...side(-1).reverse()].map(place).join(" ")}" class="none"/>`;
      svg += path(side(0), 'class="curve" style="stroke:currentColor"');
      svg += `<path class="now" d="M${X(inside(x, S.speed)).toFixed()} ${box.T}V${box.B}"/>`;
      svg += one ? `<circle cx="${cx}" cy="${cy}" r="8" class="ring"/>` : "";
    }
    return svg + dots.map((dot) => {
      const [cx, cy] = place([dot.x[xi], dot.v]), kind = dot.mine ? "off" : `dot c${dot.c}`;
      const at = `cx="${cx}" cy="${cy}" r="${dot.mine ? 8 : 3}" class="${kind}" fill-opacity=".7"`;
      const circle = `<circle ${at}><title>${esc(dot.t)}</title></circle>`, url = C.urls[dot.u];
      return url ? `<a href="${esc(url)}" tabindex="-1">${circle}</a>` : circle;
    }).join("");
  });

  const tell = (found, slow) => {
    if (!found) return "nothing here";
    const { line, p } = found, first = digits(1000 * p[2] * line.g ** slow);
    const speed = `${digits(p[0] / line.w ** slow)} tokens/s, first token after ${first} ms`;
    const paid = `$${digits(dollars(p[1]))} per million answered`;
    return `${line.name}, ${Math.round(p[3])} users: ${speed}, ${paid}${slow ? " (both at that end)" : ""}`;
  };
  const said = !C.lines ? []
    : [`Promised: ${digits(S.speed)} tokens/s, first token within ${digits(1000 * S.first)} ms.`,
      `Kept at the estimate by ${tell(best(0), 0)}.`,
      `Kept at the slow end of the interval by ${tell(best(1), 1)}.`];
  if (C.asks) {
    const asked = Object.entries(C.asks).map(([key, states]) => states[S[key]]);
    const promised = `tpot=${S.speed}%20tokens/s&ttft=${S.first}%20s`;
    const state = ["mode=decide", ...asked, promised].join("&").replace(/&/g, "&#38;");
    const link = `<a href="calculator.html#ask?${state}">The same promise in the calculator</a>`;
    said.push(`${link}, with all layouts, or for a model of your own.`);
  }
  const others = dots.filter(({ mine }) => !mine), rows = others.length || "No";
  const off = others.reduce((sum, { v }) => sum + Math.abs(v - 1), 0) / others.length;
  said.push(y.right ? `${rows} rows${others.length ? `, mean error ${(100 * off).toFixed()} %` : ""}.`
    : `${rows} public rows of this model, chip and format at these lengths.`);
  const named = `role="group" aria-label="${esc(C.title)}"`;
  return { svg: `<svg font-size="12" viewBox="0 0 640 400" ${named}>${drawn}</svg>`,
    said: said.map((line) => `<p>${line}</p>`).join("") };
};
if (typeof window !== "undefined") {
  window.inferlibScatter = (C) => {
    const of = (name) => document.getElementById(`${C.id}-${name}`);
    const show = () => {
      const S = Object.fromEntries(C.menus.map(({ key }) => [key, of(key).selectedIndex]));
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
