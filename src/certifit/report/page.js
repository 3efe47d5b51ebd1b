"use strict";
// Tables that can be sorted by their headings and filtered by words. It runs after the page has checked itself.

function numberIn(cell) {
  const given = cell.dataset.value;
  const found = (given === undefined ? cell.textContent.replace(/,/g, "") : given).match(/^[-+−]?\d*\.?\d+(e[-+]?\d+)?/i);
  return found ? Number(found[0].replace("−", "-")) : null;
}

function compare(a, b) {
  const [x, y] = [numberIn(a), numberIn(b)];
  if (x !== null && y !== null) return x - y;
  return (x === null) - (y === null) || a.textContent.localeCompare(b.textContent);
}

function sortBy(table, heading, place) {
  const up = heading.getAttribute("aria-sort") !== "ascending", body = table.tBodies[0];
  table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", up ? "ascending" : "descending");
  const rows = [...body.rows].sort((a, b) => (up ? 1 : -1) * compare(a.cells[place], b.cells[place]));
  body.append(...rows);
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((heading, place) => {
    if (!heading.textContent.trim()) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.title = "Sort by this column";
    button.addEventListener("click", () => sortBy(table, heading, place));
    heading.append(button);
  });
}

function makeFilter(table) {
  const label = document.createElement("label"), field = document.createElement("input");
  label.className = "filter";
  label.append("Show rows with ", field);
  field.type = "search";
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  (table.closest(".wide") || table).before(label);
}

document.querySelectorAll("table.sortable").forEach((table) => {
  makeSortable(table);
  if (table.tBodies[0].rows.length > 12) makeFilter(table);
});
