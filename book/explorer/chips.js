// How a mesh of chips is drawn: a matrix with its cuts, and every chip with its piece.
window.inferlibPictures = Object.assign(window.inferlibPictures || {}, {
  chips: (T, picture, view, values) => {
    if (!values.every(Number.isFinite)) {
      T.put(picture, "text", { x: 300, y: 120, "text-anchor": "middle" }, "not drawn: see above"); return; }
    const triples = view.names.length,
      triple = (k) => values.slice(triples + 3 * k, triples + 3 * k + 3).map(Math.round);
    const [mesh, rows, columns, fetched] = [0, 1, 2, 3].map(triple),
      exchanges = Array.from({ length: view.exchanges }, (_, k) => triple(4 + k));
    const marked = mesh.map((n) => Math.floor(n / 2));
    // The last axis cuts first, so that what is gathered over the first ones lies together.
    const part = (at, cuts) =>
      [2, 1, 0].reduce(([low, size], a) => [low + (cuts[a] > 1 ? at[a] * size / cuts[a] : 0),
      size / cuts[a]], [0, 1]);
    const others = (at, group) => at.some((n, a) => n !== marked[a]) &&
      at.every((n, a) => n === marked[a] || group[a] > 1);
    const box = (x, y, width, height, kind, more) => T.put(picture, "rect", Object.assign(
      { x: x.toFixed(1), y: y.toFixed(1), width: width.toFixed(1), height: height.toFixed(1), class: kind },
        more));
    const [left, top, side] = [34, 22, 236], bar = Math.max(1.5, 14 / (fetched[0] * fetched[1] * fetched[2]));
    const [x, y, z] = mesh,
      room = (n) => Math.min(304 / (n * (x + 0.6)), 264 / (Math.ceil(z / n) * (y + 0.6)), 60);
    const across = Array.from({ length: z }, (_, k) => k + 1).reduce((best, n) => (room(n) > room(best) ? n
      : best), 1), pitch = room(across), size = pitch * 0.86;
    for (let c = 0; c < z; c++) for (let b = 0; b < y; b++) for (let a = 0; a < x; a++) {
      const at = [a, b, c], own = at.every((n, k) => n === marked[k]), sends = others(at, fetched);
      const [[from, wide], [down, tall]] = [part(at, rows), part(at, columns)];
      box(left + from * side, top + down * side, wide * side, tall * side, "grid", { fill: "none" });
      if (own || sends) {
        box(left + from * side, top + down * side, wide * side, tall * side, own ? "bar c0" : "bar c6",
          { "fill-opacity": own ? 1 : 0.45 });
        box(left + from * side, top - 6 - bar, wide * side, bar, "bar c3");
        box(left - 6 - bar, top + down * side, bar, tall * side, "bar c3");
      }
      const X = 292 + ((c % across) * (x + 0.6) + a) * pitch,
        Y = 6 + (Math.floor(c / across) * (y + 0.6) + b) * pitch;
      const kind = sends ? "c6" : exchanges.some((group) => others(at, group)) ? "c3" : "";
      if (kind) box(X, Y, size, size, "bar " + kind, { "fill-opacity": 0.45 });
      const [w, h] = [Math.max(wide * size, 2), Math.max(tall * size, 2)];
      box(X + Math.min(from * size, size - w), Y + Math.min(down * size, size - h), w, h, "bar c0");
      box(X, Y, size, size, own ? "off" : "cell");
    }
    box(left, top, side, side, "room");
    T.put(picture, "text", { x: 2, y: 15 }, "input");
    T.put(picture, "text", { x: 2, y: 276 }, "output");
    T.put(picture, "text", { x: 292, y: 296 }, "X across, Y down, Z in blocks");
  },
});
