window.inferlibGuess = function (C) {
  "use strict";
  const root = document.getElementById(C.id), slider = root.querySelector("input");
  const shown = (v) => (v >= 1000 ? Math.round(v).toLocaleString("en-US") : String(+v.toPrecision(3))) + " " + C.unit;
  const guess = () => { const v = Math.pow(10, +slider.value); return C.whole ? Math.round(v) : v; };
  const show = () => {
    root.querySelector("output").textContent = shown(guess());
    slider.setAttribute("aria-valuetext", shown(guess()));
  };
  slider.addEventListener("input", show);
  root.querySelector("button").addEventListener("click", () => {
    const ratio = guess() / C.answer, off = Math.max(ratio, 1 / ratio);
    const verdict = off < 1.1 ? "spot on" : (+off.toPrecision(2)) + " times too " + (ratio > 1 ? "high" : "low");
    root.querySelector(".readout").textContent = "The model says " + shown(C.answer) + ". Your guess: " + verdict + ".";
  });
  show();
};
