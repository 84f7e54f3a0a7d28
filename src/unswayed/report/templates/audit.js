"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const [list, given, truth, least, more] = ["cards", "given", "true", "least", "more"].map(find);
  const undecided = find("undecided"); // not there if nothing can be decided
  const cards = all(".card");
  const page = cards.length - all(".later").length;
  const unmatched = find("none").textContent;
  let room = page;
  document.documentElement.classList.add("js");
  list.classList.add("first");

  const show = () => {
    const floor = least.value / 100;
    let matching = 0;
    for (const card of cards) {
      const { given: from, true: to, p } = card.dataset;
      const fits = (!given.value || given.value === from) && (!truth.value || truth.value === to) && p >= floor
        && !(undecided?.checked && card.dataset.decision);
      matching += fits;
      card.hidden = !fits || matching > room;
    }
    list.classList.remove("first");
    const shown = Math.min(matching, room).toLocaleString("en");
    const of = matching === cards.length ? "" : ` that match, of ${cards.length.toLocaleString("en")} on this page`;
    find("count").textContent = `Showing ${shown} of ${matching.toLocaleString("en")} labels${of}.`;
    find("least-shown").textContent = `${least.value} %`;
    find("none").hidden = matching > 0;
    find("none").textContent = undecided?.checked ? "No undecided label matches." : unmatched;
    more.hidden = matching <= room;
    for (const part of all(".cell, .pair")) {
      const chosen = part.dataset.given === given.value && part.dataset.true === truth.value;
      part.setAttribute("aria-pressed", chosen);
    }
  };
  const anew = () => { room = page; show(); };

  // A chosen pair that is chosen again is let go.
  const choose = (from, to) => {
    const again = given.value === from && truth.value === to;
    given.value = again ? "" : from;
    truth.value = again ? "" : to;
    anew();
    const top = find("labels").getBoundingClientRect();
    if (top.bottom < 200 || top.top > innerHeight - 200) find("labels").scrollIntoView();
  };
  list.addEventListener("decided", () => { if (undecided.checked) show(); });
  for (const field of [given, truth, least, ...(undecided ? [undecided] : [])]) field.addEventListener("input", anew);
  find("filter").addEventListener("reset", () => setTimeout(anew));
  find("filter").addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => { room += page; show(); });
  for (const part of all(".cell, .pair, .class")) {
    part.addEventListener("click", () => choose(part.dataset.given, part.dataset.true || ""));
  }

  // One cell of the map is reached by Tab, the others from there by the arrow keys.
  const cells = all(".cell");
  if (cells.length) cells[0].setAttribute("tabindex", 0);
  const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const middle = (cell) => { const box = cell.getBoundingClientRect(); return [box.x, box.y]; };
  const next = (cell, [right, down]) => {
    const [x, y] = middle(cell);
    const ahead = cells.map((other) => {
      const [dx, dy] = middle(other).map((at, i) => at - [x, y][i]);
      const far = right * dx + down * dy, aside = Math.abs(down * dx) + Math.abs(right * dy);
      return [far > 1 ? far + 3 * aside : Infinity, other];
    }).sort((a, b) => a[0] - b[0])[0];
    return ahead[0] < Infinity ? ahead[1] : null;
  };
  for (const cell of cells) {
    cell.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") choose(cell.dataset.given, cell.dataset.true);
      else if (!ways[event.key]) return;
      else {
        const other = next(cell, ways[event.key]);
        if (other) {
          cell.setAttribute("tabindex", -1);
          other.setAttribute("tabindex", 0);
          other.focus();
        }
      }
      event.preventDefault();
    });
  }

  for (const head of all("thead th")) {
    head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      const value = (row) => {
        const cell = row.cells[head.cellIndex];
        return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
      };
      const compare = (a, b) => typeof a === "number" ? a - b : -a.localeCompare(b);
      const body = find("classes").querySelector("tbody");
      const rows = [...body.rows].sort((a, b) => compare(value(a), value(b)) * (down ? -1 : 1));
      body.append(...rows);
      for (const other of all("thead th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  }

  for (const button of all(".copy")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      getSelection().selectAllChildren(code);
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "copied";
      } catch {
        button.textContent = "press Ctrl+C";
      }
    });
  }
})();
