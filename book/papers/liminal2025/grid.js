(function (id, data) {
  "use strict";
  const root = document.getElementById(id), find = (selector) => root.querySelector(selector);
  const base = data.readings[0][1], boxes = [];
  const tables = find(".tables"), told = find(".cell"), menu = find("select");
  let reading = data.readings[0][1];

  const tell = (i) => {
    const [artefact, row, column, printed] = data.cells[i];
    const ours = reading[i];
    told.textContent = artefact + ", " + row + ", " + column + ": printed " + printed +
      (ours === undefined ? ", and so computed" : ", computed " + ours);
  };
  data.cells.forEach(([artefact, row], i) => {
    const last = data.cells[i - 1] || [];
    if (last[0] !== artefact) {
      const table = tables.appendChild(document.createElement("div"));
      table.appendChild(document.createElement("b")).textContent = artefact;
    }
    if (last[0] !== artefact ||
      last[1] !== row) tables.lastChild.appendChild(document.createElement("div")).className = "row";
    const box = tables.lastChild.lastChild.appendChild(document.createElement("button"));
    box.type = "button";
    // one stop of the Tab key for all cells: the arrows move among them
    box.tabIndex = i ? -1 : 0;
    box.addEventListener("mouseenter", () => tell(i));
    box.addEventListener("focus", () => tell(i));
    boxes.push(box);
  });
  tables.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], at = boxes.indexOf(document.activeElement);
    if (!step || !boxes[at + step]) return;
    event.preventDefault();
    boxes[at].tabIndex = -1;
    boxes[at + step].tabIndex = 0;
    boxes[at + step].focus();
  });
  const draw = () => {
    reading = data.readings[menu.selectedIndex][1];
    let broken = 0;
    boxes.forEach((box, i) => {
      const wrong = reading[i] !== undefined, noise = base[i] !== undefined;
      if (wrong) broken += 1;
      box.className = wrong && noise ? "noise" : wrong ? "broken" : "";
      const [artefact, row, column, printed] = data.cells[i];
      box.setAttribute("aria-label", artefact + ", " + row + ", " + column + ": " + printed + (wrong
        ? ", not reproduced" : ", reproduced"));
    });
    find(".count").textContent = boxes.length - broken + " of " + boxes.length +
      " cells print as printed. Striped: the paper's own draws of experts.";
    told.textContent = "";
  };
  menu.addEventListener("change", draw);
  draw();
})
