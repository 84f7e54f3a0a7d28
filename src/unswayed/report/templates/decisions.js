// Decisions about the labels: made on the cards, kept by the browser, downloaded as a file.
(() => {
  const find = (id) => document.getElementById(id);
  const source = find("decision-data");
  if (!source) return;
  const { digest, samples, classes } = JSON.parse(source.textContent);
  const place = `unswayed decisions ${digest}`;
  const [list, more, name, said, clear, chooser] =
    ["cards", "more", "reviewer", "said", "clear", "chooser"].map(find);
  const cards = [...list.querySelectorAll(".card")];
  const rows = new Map(cards.map((card, at) => [card, samples[at][0]]));
  const ids = new Map(cards.map((card, at) => [card, samples[at][1]]));
  const decidable = cards.filter((card) => ids.get(card) !== null);
  const odd = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
  const clean = (text) => text.replace(odd, "�");
  const brief = (text, length) => clean(text.length > length ? `${text.slice(0, length - 1)}…` : text);
  const words = {
    relabel: (label) => `✓ now ${brief(classes[label], 40)}`,
    keep: (label, given) => `= stays ${brief(classes[given] ?? "as it is", 40)}`,
    none: () => "∅ none of these",
    unsure: () => "? unsure",
  };

  // What was decided, by row. Another tab may have this page too, so it is read before it is changed.
  const nothing = () => ({ name: "", decisions: {}, taken: [] });
  let state = nothing();
  let kept = true; // by the browser
  let unsaved = false; // whether closing the page would lose something
  const areTexts = (...values) => values.every((value) => typeof value === "string");
  const isDecision = (at) => Boolean(at) && Object.hasOwn(words, at.decision)
    && (at.decision !== "relabel" || Object.hasOwn(classes, at.label))
    && areTexts(at.key, at.time);
  const parsed = (text) => {
    try {
      const { name: by, decisions, taken } = JSON.parse(text);
      const good = Object.entries(decisions).filter(([, at]) => isDecision(at));
      const back = taken.filter((each) => areTexts(each?.key, each?.time, each?.reviewer, each?.of));
      return { name: String(by), decisions: Object.fromEntries(good), taken: back };
    } catch {
      return nothing();
    }
  };
  const tell = (text) => { said.textContent = text; said.hidden = !text; };
  const hush = () => { if (kept) tell(""); };
  const lost = () => {
    if (kept) tell("This browser cannot keep decisions. Download them before you close this page.");
    kept = false;
  };
  const load = () => {
    if (!kept) return;
    try {
      const text = localStorage.getItem(place);
      state = text === null ? nothing() : parsed(text);
    } catch {
      lost();
    }
  };
  const save = () => {
    try {
      localStorage.setItem(place, JSON.stringify(state));
      kept = true;
    } catch {
      lost();
    }
    unsaved = !kept;
  };
  const change = (edit) => { load(); edit(); save(); };
  const of = (card) => state.decisions[rows.get(card)];
  const now = () => new Date().toISOString().replace("Z", "+00:00");
  const newKey = () =>
    [...crypto.getRandomValues(new Uint8Array(8))].map((n) => n.toString(16).padStart(2, "0")).join("");

  // What the cards and the bar show of it.
  let current = decidable[0];
  const button = (what, text, title) => {
    const made = document.createElement("button");
    Object.assign(made, { type: "button", textContent: text, title });
    made.dataset.what = what;
    return made;
  };
  const choices = (card) => {
    const { given, true: to } = card.dataset;
    const old = Object.hasOwn(classes, given) ? `: ${brief(classes[given], 60)}` : "";
    const accept = Object.hasOwn(classes, to)
      ? [button("accept", "accept", `accept the suggestion: ${brief(classes[to], 60)} (y)`)] : [];
    return [...accept, button("keep", "keep", `keep the given label${old} (n)`),
      button("none", "none", "none of these classes (o)"), button("unsure", "unsure", "unsure (u)"),
      button("other", "other…", "choose another class (c)")];
  };
  const verdict = (at, card) => {
    const made = document.createElement("span");
    made.textContent = words[at.decision](at.label, card.dataset.given);
    return [made, button("undo", "undo", "undo this decision (z)")];
  };
  const reach = (card) => { // by Tab: one card and its buttons, the others from there by j and k
    const here = card === current ? 0 : -1;
    card.tabIndex = here;
    for (const each of card.querySelectorAll(".deciding button")) each.tabIndex = here;
  };
  const paint = (card) => {
    const at = of(card);
    if (at) card.dataset.decision = at.decision;
    else delete card.dataset.decision;
    card.querySelector(".deciding").replaceChildren(...(at ? verdict(at, card) : choices(card)));
    reach(card);
  };
  const count = () => {
    const made = decidable.map(of).filter(Boolean);
    const wrong = made.filter((at) => at.decision === "relabel" || at.decision === "none").length;
    const many = (n) => n.toLocaleString("en");
    find("decided").textContent = `${many(made.length)} of ${many(decidable.length)} decided`
      + (made.length ? `, ${many(wrong)} of them wrong` : "");
    clear.disabled = !made.length;
    calm();
  };
  const paintAll = () => {
    decidable.forEach(paint);
    if (document.activeElement !== name) name.value = state.name;
    count();
    list.dispatchEvent(new Event("decided"));
  };

  // Going from card to card.
  const shown = () => decidable.filter((card) => card.offsetParent);
  const go = (card, options) => { if (card) card.focus(options); };
  const enter = (card) => {
    if (card === current) return;
    const before = current;
    current = card;
    [before, card].forEach(reach);
  };
  const onward = (card, options) => {
    const from = cards.indexOf(card);
    const open = () => shown().filter((other) => !of(other));
    const ahead = () => open().find((other) => cards.indexOf(other) > from);
    while (!ahead() && !more.hidden) more.click();
    const next = ahead() || open()[0];
    go(next || find("download"), next ? options : {});
  };
  const step = (card, by) => {
    if (by > 0 && shown().at(-1) === card && !more.hidden) more.click();
    const there = shown();
    go(there[there.indexOf(card) + by]);
  };
  const row = (card, by) => {
    const { offsetLeft: x, offsetTop: y } = card;
    const there = shown().filter((other) => other.offsetLeft === x && (other.offsetTop - y) * by > 0);
    go(by > 0 ? there[0] : there.at(-1));
  };

  // Deciding. What was downloaded before and is taken back is told to who has the file.
  const history = [];
  const takeBack = (card) => {
    const at = of(card);
    if (at?.sent) state.taken.push({ key: newKey(), time: now(), reviewer: at.sent, of: at.key });
    delete state.decisions[rows.get(card)];
  };
  const changed = (card) => {
    paint(card);
    count();
    list.dispatchEvent(new Event("decided"));
  };
  const decide = (card, decision, label, options) => {
    const same = (at) => at?.decision === decision && at.label === label;
    change(() => {
      if (!same(of(card))) {
        state.decisions[rows.get(card)] = { decision, label, key: newKey(), time: now() };
      }
    });
    history.push(card);
    hush();
    changed(card);
    onward(card, options);
  };
  const relabel = (card, label, options) =>
    label === card.dataset.given ? decide(card, "keep", undefined, options)
      : decide(card, "relabel", label, options);
  const undo = (card) => {
    while (history.length && !of(history.at(-1))) history.pop();
    const target = of(card) ? card : history.pop(); // on an open card, the last decision
    if (!target) return;
    change(() => takeBack(target));
    changed(target);
    go(target);
  };
  const actions = {
    accept: (card, options) => {
      if (Object.hasOwn(classes, card.dataset.true)) relabel(card, card.dataset.true, options);
      else tell("The name of the suggested class is too long to be accepted here.");
    },
    keep: (card, options) => decide(card, "keep", undefined, options),
    none: (card, options) => decide(card, "none", undefined, options),
    unsure: (card, options) => decide(card, "unsure", undefined, options),
    other: (card) => ask(card),
    undo,
    next: (card) => step(card, 1),
    previous: (card) => step(card, -1),
    below: (card) => row(card, 1),
    above: (card) => row(card, -1),
  };
  const keys = {
    y: "accept", n: "keep", o: "none", u: "unsure", c: "other", z: "undo", j: "next", k: "previous",
    arrowright: "next", arrowleft: "previous", arrowdown: "below", arrowup: "above",
  };
  // A keyboard without Latin letters has them at the places of an American one.
  const letter = ({ key, code }) => (/^[ -~]+$/.test(key) ? key : code.replace("Key", "")).toLowerCase();
  const cardOf = (node) => {
    const card = node.closest?.(".card");
    return card && ids.get(card) !== null ? card : null;
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || chooser.open) return;
    const what = keys[letter(event)];
    const card = cardOf(event.target);
    if (card && what) actions[what](card);
    else if (event.target === document.body && (what === "next" || what === "previous")
      && !event.key.startsWith("Arrow")) go(current.offsetParent ? current : shown()[0]);
    else return;
    event.preventDefault();
  });
  list.addEventListener("focusin", ({ target }) => { if (cardOf(target)) enter(cardOf(target)); });
  list.addEventListener("click", (event) => {
    const pressed = event.target.closest(".deciding button");
    // With the mouse the page stays where it is; a key on a button has detail 0.
    if (pressed) actions[pressed.dataset.what](cardOf(pressed), { preventScroll: event.detail > 0 });
  });

  // Another class: one list for all cards.
  const [wanted, offered] = ["wanted", "offered"].map(find);
  const names = Object.entries(classes).map(([k, text]) => [k, brief(text, 60), text.toLowerCase()]);
  const offer = () => {
    const text = wanted.value.trim().toLowerCase();
    const found = names.filter(([, , low]) => low.includes(text));
    const starts = ([, , low]) => !low.startsWith(text);
    found.sort((a, b) => starts(a) - starts(b));
    offered.replaceChildren(...found.map(([k, word]) => new Option(word, k)));
    offered.selectedIndex = found.length ? 0 : -1;
  };
  const ask = (card) => {
    enter(card);
    card.classList.add("asked");
    wanted.value = "";
    offer();
    chooser.showModal();
    const box = card.getBoundingClientRect(), own = chooser.getBoundingClientRect();
    const beside = [box.right + 8, box.left - own.width - 8].find((x) => x > 0 && x + own.width < innerWidth);
    const top = beside ? box.top : box.top + 120; // without room beside the card, below its picture
    chooser.style.left = `${beside ?? 8}px`;
    chooser.style.top = `${Math.max(8, Math.min(top, innerHeight - own.height - 8))}px`;
    wanted.focus();
  };
  const take = () => {
    const label = offered.value;
    if (!label) return;
    chooser.close();
    relabel(current, label);
  };
  wanted.addEventListener("input", offer);
  wanted.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    const last = offered.options.length - 1;
    offered.selectedIndex = Math.max(0, Math.min(last, offered.selectedIndex + by));
    event.preventDefault();
  });
  offered.addEventListener("click", ({ target }) => { if (target instanceof HTMLOptionElement) take(); });
  offered.addEventListener("keydown", ({ key }) => { if (key === "Enter") take(); });
  find("chooser-form").addEventListener("submit", (event) => { event.preventDefault(); take(); });
  find("leave").addEventListener("click", () => chooser.close()); // the focus returns by itself
  chooser.addEventListener("close", () => {
    for (const card of list.querySelectorAll(".asked")) card.classList.remove("asked");
  });

  // The bar.
  const calm = () => { clear.textContent = "Clear all"; delete clear.dataset.sure; };
  clear.addEventListener("click", () => {
    if (!clear.dataset.sure) {
      clear.dataset.sure = "asked";
      clear.textContent = "Really clear all?";
      return;
    }
    change(() => decidable.forEach(takeBack));
    history.length = 0;
    hush();
    paintAll();
  });
  clear.addEventListener("blur", calm);
  name.addEventListener("input", () => {
    name.removeAttribute("aria-invalid");
    change(() => { state.name = name.value; });
  });
  const lines = (reviewer) => {
    const made = decidable.filter(of).map((card) => {
      const { key, time, decision, label } = of(card);
      const given = classes[card.dataset.given] ?? "";
      const now = decision === "relabel" ? classes[label] : null;
      return { key, time, reviewer, id: ids.get(card), decision, label: now, given, how: "report" };
    });
    return [...state.taken.map((each) => ({ ...each, decision: "undo", how: "report" })), ...made];
  };
  const offerFile = (text) => {
    const link = document.createElement("a");
    const title = document.title.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|-+$/g, "");
    link.download = `${title.slice(0, 80) || "audit"}-decisions.jsonl`;
    link.href = URL.createObjectURL(new Blob([text], { type: "application/jsonl" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    return link.download;
  };
  find("download").addEventListener("click", () => {
    load();
    const reviewer = clean(name.value).trim();
    if (!reviewer) {
      name.setAttribute("aria-invalid", "true");
      name.focus();
      tell("Say your name first: it stands beside each of your decisions.");
      return;
    }
    const made = lines(reviewer);
    if (!made.length) {
      tell("Nothing is decided yet.");
      return;
    }
    const file = offerFile(made.map((line) => `${JSON.stringify(line)}\n`).join(""));
    change(() => { for (const card of decidable.filter(of)) of(card).sent = reviewer; });
    unsaved = false;
    tell(`Saved as ${file}. Send it back to who sent you this page.`);
  });

  addEventListener("storage", (event) => {
    if (kept && (event.key === place || event.key === null)) { load(); paintAll(); }
  });
  addEventListener("beforeunload", (event) => { if (unsaved) event.preventDefault(); });

  for (const card of cards) {
    const made = document.createElement("div");
    made.className = "deciding controls";
    if (ids.get(card) === null) made.textContent = "Its name is too long to be decided here.";
    card.append(made);
  }
  load();
  paintAll();
})();
