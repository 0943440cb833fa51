(function (C) {
  "use strict";
  const root = document.getElementById(C.id), body = root.querySelector("tbody"), said = root.querySelector(".readout");
  const words = root.querySelector("input[type=search]"), more = root.querySelector("button");
  const selects = Array.from(root.querySelectorAll("select"));
  const texts = C.rows.map((row) => row.map((cell) => String(Array.isArray(cell) ? cell[0] : cell)).join(" ").toLowerCase());
  let most = C.page;
  function matches() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    return C.rows.map((row, i) => i).filter((i) =>
      wanted.every((word) => texts[i].includes(word)) &&
      selects.every((s) => s.value === "" || String(C.rows[i][+s.dataset.column]) === s.value));
  }
  function cell(value, column) {
    const td = document.createElement("td");
    if (Array.isArray(value)) {
      const a = document.createElement("a");
      a.textContent = value[0];
      a.href = value[1];
      td.appendChild(a);
    } else td.textContent = value;
    if (C.numbers.includes(column)) td.className = "number";
    return td;
  }
  function draw() {
    const found = matches();
    body.textContent = "";
    found.slice(0, most).forEach((i) => {
      const tr = document.createElement("tr");
      C.rows[i].forEach((value, column) => tr.appendChild(cell(value, column)));
      body.appendChild(tr);
    });
    const shown = Math.min(most, found.length);
    said.textContent = found.length.toLocaleString("en-US") + " of " + C.rows.length.toLocaleString("en-US") +
      " rows" + (shown < found.length ? ", the first " + shown + " shown" : "");
    more.hidden = shown >= found.length;
  }
  const again = () => { most = C.page; draw(); };
  words.addEventListener("input", again);
  selects.forEach((s) => s.addEventListener("change", again));
  more.addEventListener("click", () => { most += C.page; draw(); });
  draw();
})
