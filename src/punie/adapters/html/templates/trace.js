"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const search = document.getElementById("search");
  const found = document.getElementById("found");
  const steps = all(".step");
  const words = new Map();
  document.querySelector(".scripted").hidden = false;

  const setOpen = (open) => all(".step details").forEach((one) => { one.open = open; });
  document.getElementById("open-all").addEventListener("click", () => setOpen(true));
  document.getElementById("close-all").addEventListener("click", () => setOpen(false));

  const textOf = (step) => {
    if (!words.has(step)) words.set(step, step.textContent.toLowerCase());
    return words.get(step);
  };
  const look = () => {
    const wanted = search.value.trim().toLowerCase();
    let hits = 0;
    for (const step of steps) {
      const hit = wanted === "" || textOf(step).includes(wanted);
      step.classList.toggle("missed", !hit);
      hits += hit;
    }
    found.value = wanted === "" ? "" : `${hits} of ${steps.length} steps`;
  };
  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(look, 120);
  });

  const turns = all(".turn");
  const go = (by) => {
    if (turns.length === 0) return;
    const past = turns.filter((turn) => turn.getBoundingClientRect().top < 80).length - 1;
    const next = turns[Math.min(Math.max(past + by, 0), turns.length - 1)];
    next.scrollIntoView();
    next.querySelector("h2 a").focus({ preventScroll: true });
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea")) {
      if (event.key === "Escape" && event.target === search) {
        search.value = "";
        look();
        search.blur();
      }
      return;
    }
    if (event.key === "/") {
      event.preventDefault();
      search.focus();
    } else if (event.key === "j") go(1);
    else if (event.key === "k") go(-1);
  });

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not([open])");
    opened.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((one) => { one.open = false; }));
})();
