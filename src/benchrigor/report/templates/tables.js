"use strict";
// Tables sort by a click on a name of a column, and long ones filter by words.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const worth = (row, index) => {
    const cell = row.cells[index];
    return cell.dataset.worth === undefined ? cell.textContent : Number(cell.dataset.worth);
  };
  const order = (one, other) => {
    if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
    return typeof one === "number" ? one - other : one.localeCompare(other);
  };
  for (const [index, head] of [...(table.tHead?.rows[0].cells ?? [])].entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const way = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", way === 1 ? "ascending" : "descending");
      body.append(...[...body.rows].sort((a, b) => way * order(worth(a, index), worth(b, index))));
    });
  }
  if (body.rows.length < 10) continue;
  const filter = document.createElement("input");
  filter.type = "search";
  filter.placeholder = "Filter rows";
  filter.setAttribute("aria-label", `Filter rows of ${table.caption.textContent}`);
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    for (const row of body.rows) {
      row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    }
  });
  table.parentElement.before(filter);
}
addEventListener("beforeprint", () => {
  for (const closed of document.querySelectorAll("details")) closed.open = true;
});
