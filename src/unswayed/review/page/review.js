"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const token = new URLSearchParams(location.search).get("token") || "";
  const PAGE = 48, AHEAD = 30, WINDOW = 600, STRIP = 9, RETRY = 1500, ENOUGH = 10, FINAL = [409, 413, 422];
  const TABS = { queue: "All labels", ambiguous: "Ambiguous", outlier: "Outliers", conflict: "Duplicates", disputed: "Disputed" };
  const SAID = { keep: "kept", relabel: "changed", none: "none of these", unsure: "unsure", remove: "removed", disputed: "disputed" };
  const MARKS = { keep: "=", relabel: "→", none: "∅", unsure: "?", remove: "×", disputed: "!" };

  let facts, classes = [], reviewer = "";
  let filter = plain();
  let items = [], at = 0, total = 0, dropped = 0, exhausted = false, loading = null;
  let advancing = false;  // the next label is not there yet
  let view = "single", version = null, standing = null;
  const done = [];     // items that were decided here, the last at the end
  const undone = [];   // those that were taken back since
  let turning = 0;     // undos and redos on their way: nothing is decided until they are there
  let turns = Promise.resolve();
  let unsent = [];     // decisions that the server has not confirmed yet
  let sending = false;

  function plain() {
    return { tab: "queue", given: null, suggested: null, low: 0, high: 1, split: "any", decided: "no", text: "" };
  }
  const isPlain = () => JSON.stringify({ ...filter, tab: "queue" }) === JSON.stringify(plain());
  const count = (n) => n.toLocaleString("en");
  const percent = (p, digits = 0) => `${(100 * p).toFixed(digits)} %`;
  const chance = (p) => p > 0.99 ? "> 99 %" : p < 0.01 ? "< 1 %" : percent(p);
  const range = (x, show) => `${show(x.low)} to ${show(x.high)}`;
  const source = (row, size) => `image/${row}/${size}?token=${encodeURIComponent(token)}`;
  const newKey = () => [...crypto.getRandomValues(new Uint8Array(12))].map((x) => x.toString(16).padStart(2, "0")).join("");
  const make = (tag, text, name) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    return made;
  };
  const named = (k, tag = "bdi") => {
    const made = make(tag, classes[k]);
    made.title = classes[k];
    return made;
  };

  // Talking to the server ---------------------------------------------------------------------

  class Refused extends Error {
    constructor(status, words) { super(words); this.status = status; }
  }
  const ask = async (what, body) => {
    const answer = await fetch(`api/${what}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-token": token },
      body: JSON.stringify({ reviewer, ...body }),
    });
    if (!answer.ok) throw new Refused(answer.status, await answer.text());
    return answer.json();
  };
  const complain = (words) => {
    find("alert").textContent = words;
    find("alert").hidden = !words;
  };
  const lost = () => complain(`The server does not answer. Start it again with: ${facts ? facts.command : "unswayed review RUN"}. What is not saved yet will be sent then.`);
  let toastTimer;
  const toast = (words) => {
    find("toast").textContent = words;
    find("toast").hidden = false;
    clearTimeout(toastTimer);
    toastTimer = setTimeout(() => { find("toast").hidden = true; }, 4500);
  };

  // A decision is kept in the browser until the server has it on its disk: a reload sends it again,
  // and the key keeps it from counting twice.
  // Each has an entry of its own, so that two tabs do not remove what the other has not sent yet.
  const prefix = () => `unswayed unsent ${facts.run} `;
  const remember = (body) => {
    try { localStorage.setItem(prefix() + body.key, JSON.stringify(body)); } catch { /* only a reload would lose it */ }
    showSaved();
  };
  const forget = (body) => {
    try { localStorage.removeItem(prefix() + body.key); } catch { /* nothing is stored */ }
    showSaved();
  };
  const remembered = () => {
    try {
      const names = Object.keys(localStorage).filter((name) => name.startsWith(prefix()));
      return names.map((name) => JSON.parse(localStorage.getItem(name)));
    } catch { return []; }
  };
  const showSaved = () => {
    const saved = find("saved");
    saved.classList.toggle("unsaved", unsent.length > 0);
    saved.textContent = unsent.length ? `${count(unsent.length)} not saved` : standing && standing.undo ? "all saved" : "";
  };
  const send = async () => {
    if (sending) return;
    sending = true;
    while (unsent.length) {
      const { body, item } = unsent[0];
      try {
        const answer = await ask("decide", body);
        unsent.shift();
        forget(body);
        complain("");
        if (item) item.saving = false;
        if (item && !item.blind) Object.assign(item, answer.state);
        stand(answer);
      } catch (error) {
        if (error instanceof Refused && FINAL.includes(error.status)) {
          unsent.shift();
          forget(body);
          if (item) Object.assign(item, { state: "open", mine: false });
          complain(error.message);
        } else {
          if (error instanceof Refused) complain(`${error.message}. The decision is kept here and tried again.`);
          else lost();
          await new Promise((ready) => setTimeout(ready, RETRY));
        }
      }
    }
    sending = false;
    draw();
  };
  const settled = async () => { while (sending) await new Promise((ready) => setTimeout(ready, 10)); };

  // The queue ---------------------------------------------------------------------------------

  const more = () => {
    if (loading || exhausted) return loading;
    loading = (async () => {
      const waiting = filter.decided === "no" ? items.filter((item) => item.state === "open").length + dropped : items.length + dropped;
      const start = Math.max(0, waiting - 60);
      const asked = JSON.stringify(filter);
      const answer = await ask("items", { filter, start, count: 160 });
      if (asked !== JSON.stringify(filter)) return;
      const known = new Map(items.map((item) => [item.slot, item]));
      const rows = new Set(items.filter((item) => item.state === "open").map((item) => item.row));
      const coming = new Set(unsent.map(({ body }) => body.slot));  // decided, and not saved yet
      for (const { slot, p, top } of answer.items) if (known.has(slot)) Object.assign(known.get(slot), { p, top });
      const fresh = answer.items.filter(({ slot, row }) => !known.has(slot) && !rows.has(row) && !coming.has(slot));
      items.push(...fresh);
      total = answer.total;
      exhausted = answer.items.length < 160 && !fresh.length || start + answer.items.length >= total && !fresh.length;
      prefetch();
    })().catch((error) => error instanceof Refused ? complain(error.message) : lost()).finally(() => { loading = null; });
    return loading;
  };
  const reload = async () => {
    if (loading) await loading;
    items = []; at = 0; dropped = 0; exhausted = false;
    await more();
    draw();
  };
  // What people found has changed P(wrong): what was not seen yet is put in order again.
  const reorder = async () => {
    if (loading) await loading;
    items = items.slice(0, at + 2);
    exhausted = false;
    await more();
    draw();
  };
  const trim = () => {
    if (items.length <= WINDOW || at <= 200) return;
    const gone = items.splice(0, at - 100);
    dropped += filter.decided === "no" ? gone.filter((item) => item.state === "open").length : gone.length;
    at = 100;
  };
  const fetched = new Map();
  const fetchedAhead = (url) => {
    if (!fetched.has(url)) {
      const image = new Image();
      image.addEventListener("error", () => fetched.delete(url));  // tried again when it is needed
      image.src = url;
      fetched.set(url, image);
    }
    return fetched.get(url);
  };
  const prefetch = () => {
    const rows = [];
    // What is needed first is asked for first.
    for (const item of items.slice(at, at + 6)) rows.push([item.row, "full"]);
    for (const item of items.slice(at, at + 3)) rows.push(...(item.near || []).map(([row]) => [row, "thumb"]));
    for (const item of items.slice(at, at + (view === "grid" ? 2 * PAGE : 32))) rows.push([item.row, "thumb"]);
    for (const [row, size] of rows) fetchedAhead(source(row, size));
    for (const url of fetched.keys()) if (fetched.size > 300) fetched.delete(url); else break;
  };

  const move = async (step) => {
    if (step > 0 && items.length - at - step < AHEAD) {
      const wait = more();
      if (at + step >= items.length) await wait;
    }
    at = Math.min(Math.max(at + step, 0), Math.max(items.length - 1, 0));
    trim();
    draw();
    prefetch();
  };
  // In the queue, what is open waits; among decided or disputed ones, what was not decided here.
  const waits = (item) => !item.mine && (item.state === "open" || item.state === "disputed" || filter.decided !== "no");
  const advance = async () => {
    let next = at + 1;
    while (next < items.length && !waits(items[next])) next += 1;
    if (next < items.length) { await move(next - at); return; }
    advancing = true;
    if (!exhausted) await more();
    advancing = false;
    if (next < items.length) { await advance(); return; }
    at = items.length;
    draw();
  };

  // Decisions ---------------------------------------------------------------------------------

  const decide = (decision, label = null) => {
    const item = items[at];
    if (!item || advancing || turning) return;  // nobody decides about what is not on the screen yet
    if (unsent.length > 100) { complain("Too much is not saved yet. Wait until the server answers."); return; }
    if (decision === "relabel" && label === item.given) { decision = "keep"; label = null; }
    const settles = item.state === "disputed";
    Object.assign(item, { state: decision, label, saving: true, mine: true });
    done.push(item);
    undone.length = 0;
    const body = { row: item.row, slot: item.slot, decision, label, settles, key: newKey(), reviewer };
    unsent.push({ body, item });
    remember(body);
    advance();
    send();
  };
  const deciders = {
    accept: () => items[at] && decide("relabel", items[at].suggested),
    keep: () => decide("keep"),
    none: () => decide("none"),
    unsure: () => decide("unsure"),
    remove: () => decide("remove"),
  };
  const undo = (redo) => {
    turning += 1;
    turns = turns.then(() => turn(redo)).finally(() => { turning -= 1; });
  };
  const turn = async (redo) => {
    try {
      await settled();
      const of = redo ? standing.redo : standing.undo;
      if (!of) toast(redo ? "There is nothing to redo." : "There is nothing to undo.");
      else await turned(await ask("undo", { redo, of }), redo);
    } catch (error) {
      if (error instanceof Refused) complain(error.message); else lost();
    }
  };
  const turned = async (answer, redo) => {
    complain("");
    stand(answer);
    toast(`${redo ? "Redone" : "Undone"}${answer.samples > 1 ? `: ${count(answer.samples)} decisions` : ""}`);
    if (answer.samples > 1) { await reload(); return; }
    if (loading) await loading;
    const [told] = answer.items;
    const [from, to] = redo ? [undone, done] : [done, undone];
    const mine = from.length && from[from.length - 1].row === told.row ? from.pop() : null;
    let place = mine ? items.indexOf(mine) : items.findIndex((item) => item.slot === told.slot);
    if (place < 0) {
      place = Math.min(at, items.length);
      items.splice(place, 0, told);
    } else Object.assign(items[place], { state: told.state, label: told.label, opinions: told.opinions });
    items[place].mine = redo;
    to.push(items[place]);
    at = place;
    if (redo) await advance(); else draw();
  };
  const acceptAll = async () => {
    if (turning) return;
    try {
      await settled();
      const told = await ask("accept", { filter });
      if (!told.samples) { toast("No undecided label matches."); return; }
      const right = told.expected_right / told.samples;
      find("bulk-text").textContent = `${count(told.samples)} undecided labels match this filter. Of their suggestions, about ${count(Math.round(told.expected_right))} are expected to be right (${percent(right, right > 0.9 ? 1 : 0)}).`;
      find("bulk-yes").textContent = `Accept ${count(told.samples)}`;
      find("bulk-text").classList.toggle("loud", right < 0.5);
      find("bulk-yes").classList.toggle("main", right >= 0.5);
      const dialog = find("bulk");
      dialog.returnValue = "no";
      dialog.showModal();
      dialog.onclose = async () => {
        if (dialog.returnValue !== "yes") return;
        try {
          const answer = await ask("accept", { filter, expected: told.samples, key: newKey() });
          stand(answer);
          toast(`Accepted ${count(answer.samples)} suggestions. Press z to undo all of them.`);
          await reload();
        } catch (error) { complain(error instanceof Refused ? error.message : "The server does not answer."); }
      };
    } catch (error) { if (error instanceof Refused) toast(error.message); else lost(); }
  };

  // Where it stands ---------------------------------------------------------------------------

  const stand = (answer) => {
    const before = standing && standing.progress;
    standing = answer;
    const p = answer.progress;
    find("reviewed").textContent = count(p.reviewed);
    find("wrong").textContent = count(p.wrong);
    const decided = p.reviewed + p.unseen, goal = decided + p.to_stop;
    const share = goal ? decided / goal : 1;
    find("bar-done").style.width = `${100 * share}%`;
    find("bar").setAttribute("aria-label", `${percent(share)} of the way to the stop line`);
    find("to-stop").textContent = p.to_stop
      ? `${count(p.to_stop)} more to the stop line`
      : "You can stop here: fewer than one in five of the rest is expected to be wrong.";
    find("to-stop").classList.toggle("over", !p.to_stop);
    const round = (x) => count(Math.round(x));
    const figure = (id, main, small) => find(id).replaceChildren(main, ...(small ? [make("small", small)] : []));
    figure("hidden", range(p.hidden, round), `probably about ${round(p.hidden.value)}`);
    find("unseen").hidden = !p.unseen;
    find("unseen").textContent = `${count(p.unseen)} accepted unseen`;
    figure("fifty", p.next_fifty === null ? "–" : `${percent(p.next_fifty)} wrong`);
    const measured = (id, x, n, what, digits) => {
      if (x && n >= ENOUGH) figure(id, percent(x.value, digits), `${range(x, (y) => percent(y, digits))}, ${count(n)} ${what}`);
      else figure(id, "not known yet", n ? `${n} of ${ENOUGH} ${what}` : "");
    };
    measured("recall", p.recall, p.rechecked, "checks", 0);
    measured("mistakes", p.mistakes, p.repeated, "second looks", 1);
    find("fitted").textContent = p.fitted ? `P(wrong) is fitted to ${count(p.fitted)} decisions. The audit's own stop line was after ${count(p.first_stop)} labels.` : "";
    for (const tab of find("tabs").children) {
      const waiting = answer.tabs[tab.dataset.tab];
      tab.querySelector("b").textContent = count(waiting);
      tab.hidden = tab.dataset.tab !== "queue" && tab.dataset.tab !== filter.tab && !waiting;
    }
    find("undo").disabled = !answer.undo;  // the key of what would be undone
    find("redo").disabled = !answer.redo;
    showSaved();
    if (version !== null && answer.version !== version && before) {
      find("fitted").classList.add("fresh");
      toast(`P(wrong) was fitted again, to ${count(p.fitted)} decisions: ${count(p.to_stop)} labels to the stop line now.`);
      version = answer.version;
      reorder();
    }
    version = answer.version;
  };

  // Drawing -----------------------------------------------------------------------------------

  const show = (image, row, size) => {
    const url = source(row, size);
    if (image.dataset.url === url) return;
    image.dataset.url = url;
    image.src = url;
  };
  // The picture that was fetched ahead is put in place as it is: nothing has to be decoded then.
  const placed = (row) => {
    const image = fetchedAhead(source(row, "full"));
    if (find("image") !== image) {
      find("image").replaceWith(image);
      image.id = "image";
    }
    if (image.complete && image.naturalWidth) sharpen({ target: image });
    else if (image.complete) miss();
    else {
      image.onload = sharpen;
      image.onerror = () => { if (find("image") === image) miss(); };
    }
    return image;
  };
  const miss = () => {
    const item = items[at];
    find("picture").dataset.why = item ? `The picture of ${item.id} cannot be shown. It may have been moved or be damaged.` : "";
    find("picture").classList.add("missing");
  };
  const sharpen = (event) => event.target.classList.toggle("tiny", Math.max(event.target.naturalWidth, event.target.naturalHeight) <= 64);
  const said = (item) => item.state === "relabel" ? `→ ${classes[item.label]}` : SAID[item.state] || "";

  const draw = () => {
    const item = items[at];
    const empty = !item;
    find("single").hidden = empty || view !== "single";
    find("grid").hidden = find("pager").hidden = empty || view !== "grid";
    find("empty").hidden = !empty || Boolean(loading);
    find("as-single").setAttribute("aria-pressed", view === "single");
    find("as-grid").setAttribute("aria-pressed", view === "grid");
    drawFilter();
    if (empty) { drawEmpty(); return; }
    const words = [TABS[filter.tab]];
    if (!isPlain()) words.push("filtered");
    const waiting = isPlain() && standing ? standing.tabs[filter.tab] : total;
    find("where").textContent = `${words.join(", ")}: ${count(waiting)} ${filter.decided === "no" ? "undecided" : filter.decided === "yes" ? "decided" : ""}`;
    if (view === "single") drawSingle(item); else drawGrid();
  };

  const drawEmpty = () => {
    find("where").textContent = TABS[filter.tab];
    find("empty-text").textContent = isPlain() && filter.tab === "queue" ? "Every label was reviewed." : filter.tab === "disputed" ? "No decision is disputed." : isPlain() ? "No undecided label is left here." : "No label matches this filter.";
    find("empty-next").textContent = isPlain() ? "Get the corrected labels with: unswayed export" : "Clear the filter to see the others.";
  };

  const drawSingle = (item) => {
    find("picture").classList.remove("missing");
    const image = placed(item.row);
    image.alt = `Sample labelled ${classes[item.given]}`;
    find("id").textContent = item.id;
    find("id").title = item.id;
    find("chips").replaceChildren(...chips(item));
    find("from").replaceChildren(classes[item.given]);
    find("to").replaceChildren(classes[item.suggested]);
    find("accept-name").textContent = classes[item.suggested];
    find("keep-name").textContent = classes[item.given];
    const likely = item.blind || item.p >= 0.5;
    document.querySelector("[data-do=accept]").classList.toggle("main", likely);
    document.querySelector("[data-do=keep]").classList.toggle("main", !likely);
    find("chance-bar").firstElementChild.style.width = `${100 * (item.p || 0)}%`;
    find("chance-bar").hidden = item.blind;
    find("chance-text").textContent = item.blind ? "Blind check: judge by the picture alone" : `${chance(item.p)} wrong`;
    const changed = !item.blind && Math.abs(item.p - item.p_audit) >= 0.01;
    find("chance-was").textContent = changed ? `${item.p > item.p_audit ? "▲" : "▼"} the audit said ${chance(item.p_audit)}; your decisions changed it` : "";
    for (const button of find("actions").children) {
      const does = button.dataset.do;
      const chosen = does === item.state || (does === "accept" && item.state === "relabel" && item.label === item.suggested);
      button.classList.toggle("chosen", chosen);
      button.setAttribute("aria-pressed", chosen);
    }
    drawOpinions(item);
    drawClasses(item);
    drawNear(item);
    drawStrip();
    find("say").textContent = `Labelled ${classes[item.given]}, suggested ${classes[item.suggested]}${item.blind ? "" : `, ${chance(item.p)} wrong`}${item.state === "open" ? "" : `, ${said(item)}`}`;
  };
  const chips = (item) => {
    const words = (item.flags || "").split(" ").filter(Boolean).map((word) => make("span", word, "chip"));
    if (item.held_out) words.push(make("span", "held out", "chip"));
    if (!item.blind && item.p < facts.stop) words.push(make("span", "below the stop line", "chip"));
    if (item.state !== "open") words.push(make("span", said(item), "chip loud"));
    return words;
  };
  const drawOpinions = (item) => {
    const several = (item.opinions || []).length > 1 || item.state === "disputed";
    find("opinions").hidden = !several;
    find("opinions").textContent = !several ? "" : [
      item.state === "disputed" ? "Decisions differ. What you decide now settles it." : "Decided by several:",
      ...item.opinions.map((each) => `${each.reviewer}${each.again ? ", second look" : ""}: ${said(each)}`),
    ].join("\n");
  };
  // Few classes keep their numbers, so that fingers learn them; of many, the most probable. Classes
  // that are digits have themselves as keys.
  const numbered = (item) => {
    if (classes.every((name) => /^[0-9]$/.test(name))) return new Map(classes.map((name, k) => [name, k]));
    // Chosen once: a number must not change its meaning while somebody looks at it.
    item.chosen ??= classes.length <= 10 ? [...classes.keys()] : [...new Set([item.suggested, ...(item.top || []).map(([k]) => k), item.given])].slice(0, 6);
    return new Map(item.chosen.map((k, n) => [String((n + 1) % 10), k]));
  };
  const drawClasses = (item) => {
    const shares = new Map(item.top || []);
    const shown = [...numbered(item)];
    // Buttons are used again: one that is replaced while it is pressed would not be clicked.
    const list = find("classes");
    while (list.children.length > shown.length) list.lastChild.remove();
    while (list.children.length < shown.length) {
      const button = make("button");
      button.type = "button";
      button.append(make("kbd"), make("bdi"), make("span", "", "share"), make("i", "", "bar"));
      list.append(button);
    }
    shown.forEach(([key, k], n) => {
      const button = list.children[n], [kbd, name, share, bar] = button.children;
      button.dataset.label = k;
      kbd.textContent = key;
      name.textContent = name.title = classes[k];
      share.textContent = shares.has(k) ? chance(shares.get(k)) : "";
      bar.hidden = !shares.has(k);
      bar.style.width = `${100 * (shares.get(k) || 0)}%`;
      button.classList.toggle("is-given", k === item.given);
      button.classList.toggle("chosen", item.state === "relabel" && item.label === k);
    });
    find("other").hidden = classes.length <= 10;
  };
  const drawNear = (item) => {
    const twins = item.twins.map(([row, k]) => [row, k, true]);
    const rows = new Set(twins.map(([row]) => row));
    const near = (item.near || []).filter(([row]) => !rows.has(row)).map(([row, k]) => [row, k, false]);
    const shown = [...twins, ...near].slice(0, 5);
    find("near-title").textContent = shown.length ? (twins.length ? "Nearly the same, and most similar" : "Most similar, with their labels") : "";
    const list = find("near-list");
    while (list.children.length > shown.length) list.lastChild.remove();
    while (list.children.length < shown.length) {
      const entry = make("li");
      const image = make("img");
      image.addEventListener("load", sharpen);
      entry.append(image, make("bdi"), make("small"));
      list.append(entry);
    }
    shown.forEach(([row, k, twin], n) => {
      const [image, name, small] = list.children[n].children;
      show(image, row, "thumb");
      image.alt = `Similar sample labelled ${classes[k]}`;
      name.textContent = name.title = classes[k];
      small.textContent = twin ? "the same" : "";
      list.children[n].className = `${k === item.suggested ? "agrees" : ""} ${twin ? "twin" : ""}`;
    });
  };
  const drawStrip = () => {
    const first = Math.max(0, at - STRIP + 5), shown = items.slice(first, first + 40);
    const strip = find("strip");
    while (strip.children.length > shown.length) strip.lastChild.remove();
    while (strip.children.length < shown.length) {
      const entry = make("li");
      const image = make("img");
      image.alt = "";
      image.addEventListener("load", sharpen);
      entry.append(image, make("span", "", "mark"));
      strip.append(entry);
    }
    shown.forEach((item, n) => {
      const entry = strip.children[n];
      show(entry.firstChild, item.row, "thumb");
      entry.className = `${first + n === at ? "now" : ""} ${item.state !== "open" ? "done" : ""}`;
      entry.lastChild.textContent = MARKS[item.state] || "";
      entry.lastChild.hidden = item.state === "open";
      entry.dataset.place = first + n;
    });
  };

  const drawGrid = () => {
    const first = Math.floor(at / PAGE) * PAGE, shown = items.slice(first, first + PAGE);
    const grid = find("grid"), focused = grid.contains(document.activeElement);
    const parts = [];
    let above = first === 0 || (items[first - 1].p ?? 1) >= facts.stop;
    shown.forEach((item, n) => {
      if (above && !item.blind && item.p < facts.stop && filter.tab === "queue") {
        above = false;
        parts.push(make("p", `Stop line: of the labels below, fewer than one in five is expected to be wrong.`, "line"));
      }
      parts.push(tile(item, first + n));
    });
    grid.replaceChildren(...parts);
    const now = grid.querySelector(".now");
    if (now) now.scrollIntoView({ block: "nearest" });
    if (now && focused) now.focus({ preventScroll: true });
    find("page").textContent = `${count(first + 1)} to ${count(first + shown.length)} of ${count(Math.max(total, first + shown.length))}`;
    find("before").disabled = first === 0;
    find("after").disabled = exhausted && first + PAGE >= items.length;
    const item = items[at];
    find("say").textContent = `Labelled ${classes[item.given]}, suggested ${classes[item.suggested]}`;
  };
  const tile = (item, place) => {
    const made = make("div", undefined, "tile");
    made.setAttribute("role", "option");
    made.setAttribute("aria-selected", place === at);
    made.tabIndex = place === at ? 0 : -1;
    made.setAttribute("aria-label", `Labelled ${classes[item.given]}, suggested ${classes[item.suggested]}${item.state === "open" ? "" : `, ${said(item)}`}`);
    made.classList.toggle("now", place === at);
    made.classList.toggle("done", item.state !== "open");
    const image = make("img");
    image.alt = "";
    image.loading = "lazy";
    image.addEventListener("load", sharpen);
    show(image, item.row, "thumb");
    const labels = make("p");
    labels.append(named(item.given), "→", named(item.suggested));
    labels.firstChild.className = "from";
    const answer = make("p", item.state === "open" ? "\u00a0" : said(item), "said");
    made.append(image, make("span", item.blind ? "blind" : chance(item.p), "p"), labels, answer);
    made.addEventListener("click", () => { at = place; draw(); });
    made.addEventListener("dblclick", () => { at = place; view = "single"; draw(); });
    return made;
  };

  // Filters -----------------------------------------------------------------------------------

  const fields = ["given", "suggested", "low", "high", "decided", "split", "text"];
  const read = () => {
    const number = (id) => find(id).value === "" ? null : Number(find(id).value);
    const share = (id, other) => {
      const value = number(id);
      return value === null || Number.isNaN(value) ? other : Math.min(Math.max(value / 100, 0), 1);
    };
    return {
      tab: filter.tab, given: number("given"), suggested: number("suggested"), low: share("low", 0), high: share("high", 1),
      split: find("split").value, decided: find("decided").value, text: find("text").value,
    };
  };
  const apply = (changed) => {
    filter = { ...filter, ...changed };
    for (const id of ["given", "suggested"]) find(id).value = filter[id] ?? "";
    for (const id of ["low", "high"]) if (document.activeElement !== find(id)) find(id).value = Math.round(100 * filter[id]);
    for (const id of ["decided", "split"]) find(id).value = filter[id];
    if (document.activeElement !== find("text")) find("text").value = filter.text;
    for (const tab of find("tabs").children) tab.setAttribute("aria-selected", tab.dataset.tab === filter.tab);
    return reload();
  };
  const drawFilter = () => {
    const usual = plain();
    for (const id of fields) find(id).classList.toggle("active", filter[id] !== usual[id]);
    find("clear").hidden = isPlain();
    for (const button of document.querySelectorAll("#map button, #worst button")) {
      button.setAttribute("aria-pressed", Number(button.dataset.given) === filter.given && Number(button.dataset.suggested) === filter.suggested);
    }
  };
  const choosePair = (given, suggested) => {
    const again = filter.given === given && filter.suggested === suggested;
    apply(again ? { given: null, suggested: null } : { given, suggested });
  };
  const drawMap = () => {
    const most = classes.length <= 20 ? classes.length : 14;
    const wanted = classes.length <= 20 ? classes.map((_, k) => k)
      : [...new Set(facts.pairs.flatMap(([a, b]) => [a, b]))].slice(0, most).sort((a, b) => a - b);
    const counts = new Map(facts.pairs.map(([a, b, n]) => [`${a} ${b}`, n]));
    const top = Math.max(...facts.pairs.map(([, , n]) => n), 1);
    const map = find("map");
    map.style.gridTemplateColumns = `minmax(0, ${wanted.length > 10 ? 2.6 : 3.4}fr) repeat(${wanted.length}, minmax(0, 1fr))`;
    const parts = [make("span")];
    for (const k of wanted) { const head = named(k, "span"); head.className = "head"; parts.push(head); }
    for (const a of wanted) {
      const row = named(a, "span");
      row.className = "name";
      parts.push(row);
      for (const b of wanted) {
        if (a === b) { parts.push(make("span", "", "same")); continue; }
        const n = counts.get(`${a} ${b}`) || 0;
        const cell = make("button");
        cell.type = "button";
        cell.dataset.given = a;
        cell.dataset.suggested = b;
        cell.tabIndex = -1;
        cell.title = `${classes[a]} → ${classes[b]}: ${count(n)} worth a look`;
        cell.setAttribute("aria-label", cell.title);
        const shade = make("i");
        shade.style.opacity = n ? 0.15 + 0.75 * Math.sqrt(n / top) : 0;
        cell.append(shade);
        if (n && wanted.length <= 10) cell.append(make("span", n > 99 ? "" : n));
        cell.addEventListener("click", () => choosePair(a, b));
        parts.push(cell);
      }
    }
    map.replaceChildren(...parts);
    const cells = [...map.querySelectorAll("button")];
    if (cells.length) cells[0].tabIndex = 0;
    map.addEventListener("keydown", (event) => {
      const here = cells.indexOf(event.target), wide = wanted.length - 1;
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -wide, ArrowDown: wide }[event.key];
      if (here < 0 || !step) return;
      event.preventDefault();
      event.stopPropagation();
      const next = cells[here + step];
      if (!next) return;
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
    find("worst").replaceChildren(...facts.pairs.slice(0, 8).map(([a, b, n]) => {
      const line = make("li"), button = make("button");
      button.type = "button";
      button.dataset.given = a;
      button.dataset.suggested = b;
      button.append(named(a), " → ", named(b));
      button.addEventListener("click", () => choosePair(a, b));
      line.append(button, make("span", count(n)));
      return line;
    }));
  };

  // Choosing a class by typing ----------------------------------------------------------------

  let picked = 0, offered = [];
  const pick = () => {
    if (!items[at]) return;
    find("picker-text").value = "";
    offer();
    find("picker").showModal();
  };
  const offer = () => {
    const wanted = find("picker-text").value.trim().toLowerCase();
    const order = wanted ? classes.map((_, k) => k) : [...new Set([...(items[at].top || []).map(([k]) => k), ...classes.keys()])];
    const matching = order.filter((k) => classes[k].toLowerCase().includes(wanted));
    offered = matching.sort((a, b) => wanted ? classes[b].toLowerCase().startsWith(wanted) - classes[a].toLowerCase().startsWith(wanted) : 0).slice(0, 50);
    picked = 0;
    find("picker-list").replaceChildren(...offered.map((k, n) => {
      const line = named(k, "li");
      line.setAttribute("role", "option");
      line.id = `option-${n}`;
      line.addEventListener("click", () => take(k));
      return line;
    }));
    mark();
  };
  const mark = () => {
    [...find("picker-list").children].forEach((line, n) => line.setAttribute("aria-selected", n === picked));
    const line = find("picker-list").children[picked];
    if (line) line.scrollIntoView({ block: "nearest" });
    find("picker-text").setAttribute("aria-activedescendant", line ? line.id : "");
  };
  const take = (k) => {
    find("picker").close();
    if (k !== undefined) decide("relabel", k);
  };
  find("picker-text").addEventListener("input", offer);
  find("picker-text").addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) picked = Math.min(Math.max(picked + step, 0), offered.length - 1);
    else if (event.key === "Enter") take(offered[picked]);
    else return;
    event.preventDefault();
    mark();
  });

  // Keys and buttons --------------------------------------------------------------------------

  const setView = (name) => { view = name; draw(); };
  const zoom = () => {
    if (!items[at]) return;
    if (view === "grid") { setView("single"); return; }
    show(find("zoom-image"), items[at].row, "full");
    find("zoom-image").alt = find("image").alt;
    find("zoom").showModal();
  };
  const across = () => {
    const tiles = [...find("grid").querySelectorAll(".tile")];
    const top = tiles.length ? tiles[0].offsetTop : 0;
    return Math.max(1, tiles.findIndex((each) => each.offsetTop > top));
  };
  const keys = {
    y: deciders.accept, n: deciders.keep, o: deciders.none, u: deciders.unsure, x: deciders.remove,
    z: () => undo(false), Z: () => undo(true), c: pick, "/": pick, g: () => setView(view === "grid" ? "single" : "grid"),
    j: () => move(1), k: () => move(-1), ArrowRight: () => move(1), ArrowLeft: () => move(-1), " ": zoom,
    ArrowDown: () => view === "grid" ? move(across()) : undefined, ArrowUp: () => view === "grid" ? move(-across()) : undefined,
    PageDown: () => view === "grid" ? move(PAGE) : undefined, PageUp: () => view === "grid" ? move(-PAGE) : undefined,
    Enter: () => view === "grid" ? setView("single") : undefined, "?": () => find("help").showModal(),
  };
  // The letter of a key on any keyboard: a Cyrillic н is on the key Y, and Caps Lock changes nothing.
  const letter = (event) => {
    const plain = /^[a-z]$/i.test(event.key) ? event.key.toLowerCase() : /^Key[A-Z]$/.test(event.code) && event.key.length === 1 ? event.code[3].toLowerCase() : event.key;
    return plain === "z" && event.shiftKey ? "Z" : plain;
  };
  document.addEventListener("keydown", (event) => {
    const key = letter(event);
    if (event.key === "Escape" && event.target.closest && event.target.closest("form#filter")) { event.target.blur(); return; }
    if (document.querySelector("dialog[open]")) {
      if (find("zoom").open && (key === " " || keys[key] === undefined)) { find("zoom").close(); event.preventDefault(); }
      if (!find("zoom").open || key === " ") return;
      find("zoom").close();
    }
    if (event.ctrlKey || event.metaKey) {
      const wanted = { z: "z", Z: "Z", y: "Z" }[key];
      if (wanted && !event.target.closest("input")) { event.preventDefault(); keys[wanted](); }
      return;
    }
    const field = event.target.closest("input, select, textarea");
    if (event.altKey || (field && !field.closest("dialog:not([open])"))) return;  // a dialog that closed may keep the focus
    if ((event.key === " " || event.key === "Enter") && event.target.closest("button") && event.target.id !== "picture") return;
    if (event.repeat && !key.startsWith("Arrow") && !["j", "k"].includes(key)) return;
    if (/^[0-9]$/.test(key) && items[at]) {
      const chosen = numbered(items[at]).get(key);
      if (chosen !== undefined) decide("relabel", chosen);
      return;
    }
    const act = keys[key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  find("actions").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    deciders[button.dataset.do]();
    if (event.detail) button.blur();  // clicked: keys go to the page again
  });
  find("classes").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    decide("relabel", Number(button.dataset.label));
    if (event.detail) button.blur();
  });
  find("strip").addEventListener("click", (event) => {
    const entry = event.target.closest("li");
    if (entry) move(Number(entry.dataset.place) - at);
  });
  const on = (id, act) => find(id).addEventListener("click", act);
  on("undo", () => undo(false));
  on("redo", () => undo(true));
  on("picture", zoom);
  on("zoom", () => find("zoom").close());
  on("as-single", () => setView("single"));
  on("as-grid", () => setView("grid"));
  on("before", () => move(-PAGE));
  on("after", () => move(PAGE - at % PAGE));
  on("open-help", () => find("help").showModal());
  on("accept-all", acceptAll);
  on("other", pick);
  on("who", () => { find("name-text").value = reviewer; find("name").returnValue = ""; find("name").showModal(); });
  find("name").addEventListener("close", () => {
    const name = find("name-text").value.trim();
    if (name && find("name").returnValue === "yes") setName(name);
  });
  const setName = (name) => {
    reviewer = name;
    find("who").textContent = `as ${name}`;
    try { localStorage.setItem(`unswayed reviewer ${facts.run}`, name); } catch { /* asked again next time */ }
    ask("progress", {}).then(stand).catch(() => {});
  };
  let typing;
  find("filter").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => apply(read()), 150);
  });
  find("filter").addEventListener("change", (event) => { if (event.target.closest("select")) event.target.blur(); });
  find("filter").addEventListener("submit", (event) => event.preventDefault());
  find("filter").addEventListener("reset", (event) => { event.preventDefault(); apply({ ...plain(), tab: filter.tab }); });
  find("zoom-image").addEventListener("load", sharpen);
  addEventListener("beforeunload", (event) => { if (unsent.length) event.preventDefault(); });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && facts && !sending) ask("progress", {}).then(stand).catch(lost);
  });

  const begin = async () => {
    const answer = await fetch("api/start", { headers: { "x-token": token } });
    if (!answer.ok) throw new Refused(answer.status, await answer.text());
    facts = await answer.json();
    classes = facts.classes;
    document.title = `Review ${facts.title}`;
    find("title").textContent = facts.title;
    reviewer = facts.reviewer;
    if (!facts.named) try { reviewer = localStorage.getItem(`unswayed reviewer ${facts.run}`) || reviewer; } catch { /* the default */ }
    find("who").textContent = `as ${reviewer}`;
    for (const [tab, words] of Object.entries(TABS)) {
      const button = make("button", `${words} `);
      button.type = "button";
      button.dataset.tab = tab;
      button.setAttribute("role", "tab");
      button.setAttribute("aria-selected", tab === filter.tab);
      button.append(make("b"));
      button.addEventListener("click", () => { button.blur(); apply({ tab }); });
      find("tabs").append(button);
    }
    for (const id of ["given", "suggested"]) {
      find(id).append(...classes.map((name, k) => {
        const option = make("option", name.length > 40 ? `${name.slice(0, 39)}…` : name);
        option.value = k;
        return option;
      }));
    }
    drawMap();
    stand(facts);
    unsent = remembered().map((body) => ({ body, item: null }));
    await reload();
    if (unsent.length) send();
    else if (reviewer !== facts.reviewer) ask("progress", {}).then(stand).catch(() => {});
  };
  begin().catch((error) => error instanceof Refused ? complain(error.message) : lost());
})();
