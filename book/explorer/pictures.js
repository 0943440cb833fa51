// How pictures are drawn; every number comes from the explorer, only places are calculated here.
window.inferlibPictures = Object.assign(window.inferlibPictures || {}, {
  gauge: (T, picture, view, values) => {
    const parts = values.slice(0, -1), room = values[parts.length], end = 420;
    const X = (v) => Math.min(592, 8 + (v / room) * (end - 8));
    let left = 0;
    parts.forEach((part, k) => {
      T.put(picture, "rect", { x: X(left), y: 4, width: Math.max(0, X(left + part) - X(left)), height: 26,
        class: "bar c" + view.colours[k] });
      left += part;
    });
    T.put(picture, "rect", { x: 8, y: 4, width: end - 8, height: 26, class: "room" });
    T.put(picture, "text", { x: end + 4, y: 44, "text-anchor": "end" },
      "full at " + T.digits(room) + " " + view.units[0]);
    T.put(picture, "text", { x: 8, y: 44 }, T.digits(left) + " " + view.units[0] + (left > room
      ? ": too much" : ""));
    if (left > room) T.put(picture, "rect",
      { x: end, y: 2, width: X(left) - end, height: 30, class: "over" });
  },
  plane: (T, picture, view, values) => {
    const [X, Y] = T.axes(picture, view.x, view.y), at = (k) => [X(values[k]), Y(values[k + 1])];
    let k = 2;
    view.lines.forEach((corners, n) => {
      const points = Array.from({ length: corners },
        (_, c) => at(k + 2 * c).map((v) => v.toFixed(1)).join(" "));
      T.put(picture, "path", { d: "M" + points.join("L"), class: "curve c" + (n + 1) });
      k += 2 * corners;
    });
    const [x, y] = at(0);
    if (!Number.isFinite(x + y)) {
      T.put(picture, "text", { x: 330, y: 240, "text-anchor": "middle" }, "no step: see above"); return; }
    T.put(picture, "line", { x1: x, x2: x, y1: y, y2: 254, class: "now" });
    T.put(picture, "circle", { cx: x, cy: y, r: 7, class: "dot c0" });
  },
  frontier: (T, picture, view, [speed, price]) => {
    const [X, Y] = T.axes(picture, view.x, view.y);
    const shown = ([x, y]) => x >= view.x.low && x <= view.x.high && y >= view.y.low && y <= view.y.high;
    const edge = view.edge.filter(shown);
    T.put(picture, "path", { d: T.path(edge, X, Y), class: "curve c0" });
    view.marks.forEach(([name, least], k) => {
      const [x, y] = edge.filter((p) => least === null || p[0] >= least).pop() || [];
      if (x === undefined) return;
      T.put(picture, "circle", { cx: X(x), cy: Y(y), r: 5, class: "dot c0" });
      // the first to the right below its dot, the cheapest to the left, so that no name lies on another
      const place = { x: X(x) + (k ? -9 : 9), y: Y(y) + (k && least ? -8 : 18) };
      T.put(picture, "text", { ...place, "text-anchor": k ? "end" : "start" }, name + ": $" + T.digits(y));
    });
    if (!shown([speed, price])) return;
    const x = X(speed), y = Y(price);
    view.trail = (view.trail || []).concat([x.toFixed() + " " + y.toFixed()]).slice(-40);
    T.put(picture, "path", { d: "M" + view.trail.join("L"), class: "trail" });
    T.put(picture, "circle", { cx: x, cy: y, r: 7, class: "dot c3" });
    T.put(picture, "text", { x: x + 11, y: y - 8 }, "you");
  },
});
