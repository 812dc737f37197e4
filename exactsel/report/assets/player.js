"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { steps, nodes, names } = data;
  const element = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const WIDE = 176, HIGH = 64, BOX = 112, TALL = 44, PAUSE = 1400;
  let at = 0, picked = null, timer = null;

  const root = steps.find((step) => step.kind === "start");
  const number = (value) => (value === null ? "none yet" : String(Number(value.toPrecision(6))));

  // What is on the stage after a step: every node met so far, with its state then.
  function stage(last) {
    // The root is there before anything is done to it.
    const seen = new Map(root === undefined ? [] : [[root.node, { fate: "open", shown: root.shown }]]);
    for (let i = 0; i <= last; i++) {
      const step = steps[i];
      if (step.node === null) continue;
      const before = seen.get(step.node) || { fate: "open" };
      seen.set(step.node, { ...before, shown: step.shown });
      if (step.kind === "split") {
        seen.get(step.node).fate = "split";
        for (const [child, shown] of Object.entries(step.children)) seen.set(Number(child), { fate: "open", shown });
      }
      if (step.kind === "cut") Object.assign(seen.get(step.node), { fate: "cut", why: step.text });
    }
    return seen;
  }

  function make(tag, attributes, text) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // The tree grows from left to right: a node may have many children, and pages scroll downwards.
  const left = (place) => 12 + place.y * WIDE;
  const top = (place) => 22 + place.x * HIGH;

  function drawEdge(svg, place) {
    const parent = nodes[place.parent];
    const [x1, y1] = [left(parent) + BOX, top(parent) + TALL / 2];
    const [x2, y2] = [left(place), top(place) + TALL / 2];
    svg.append(make("path", { class: "edge", d: `M${x1} ${y1}C${x1 + 40} ${y1} ${x2 - 40} ${y2} ${x2} ${y2}` }));
    svg.append(make("text", { class: "quiet halo", x: x2, y: top(place) - 5 }, place.by));
  }

  function drawNode(svg, id, node, now) {
    const place = nodes[id];
    const fate = { open: "open", split: "split", cut: "discarded ✕" }[node.fate];
    const kind = ["node", node.fate, now ? "now" : "", picked === id ? "picked" : ""].join(" ").trim();
    const group = make("g", {
      class: kind, tabindex: 0, role: "button", "data-node": id,
      // What is seen must stand in it as it is seen.
      "aria-label": `Node with bound ≥ ${number(node.shown.bound)} ${id}: ${fate}`,
      transform: `translate(${left(place)} ${top(place)})`,
    });
    group.append(make("rect", { class: "box", width: BOX, height: TALL, rx: 7 }));
    group.append(make("text", { x: BOX / 2, y: 18, "text-anchor": "middle" }, `≥ ${number(node.shown.bound)} `));
    group.append(make("text", { class: "quiet", x: BOX / 2, y: 35, "text-anchor": "middle" }, `${id}: ${fate}`));
    group.addEventListener("click", () => pick(id));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter") pick(id);
    });
    svg.append(group);
  }

  function drawTree(seen, step) {
    const places = Object.values(nodes);
    const width = 60 + BOX + WIDE * Math.max(...places.map((p) => p.y));
    const height = 34 + TALL + HIGH * Math.max(...places.map((p) => p.x));
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
    for (const id of seen.keys()) if (nodes[id].parent !== null) drawEdge(svg, nodes[id]);
    for (const [id, node] of seen) drawNode(svg, id, node, id === step.node);
    element("tree").replaceChildren(svg);
    const place = nodes[step.node !== null ? step.node : root === undefined ? null : root.node];
    if (place !== undefined) {
      const tree = element("tree");
      tree.scrollLeft = left(place) + BOX / 2 - tree.clientWidth / 2;
      tree.scrollTop = top(place) + TALL / 2 - tree.clientHeight / 2;
    }
  }

  function html(tag, text, kind) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }

  function columns(list) {
    const made = html("dd");
    if (!list.length) made.textContent = "none";
    for (const j of list) made.append(html("span", names[j], "chip"));
    return made;
  }

  function drawPanel(seen, id) {
    const panel = element("panel"), node = seen.get(id);
    if (!node) {
      panel.replaceChildren(html("p", "No node yet.", "quiet"));
      return;
    }
    const facts = html("dl"), { shown } = node;
    const rows = [
      ["In the model (S)", columns(shown.S)],
      [`Undecided (C), ${shown.slots} more at most`, columns(shown.C)],
      ["Left out", columns(shown.out)],
      ["Lower bound", html("dd", number(shown.bound))],
      ["Fate", html("dd", node.why || (node.fate === "split" ? "split into its children" : "open"))],
    ];
    for (const [term, value] of rows) facts.append(html("dt", term), value);
    panel.replaceChildren(html("h3", `Node ${id}`), facts);
  }

  function pick(id) {
    picked = id;
    draw();
    const again = document.querySelector(`[data-node="${id}"]`);
    if (again) again.focus({ preventScroll: true });
  }

  function draw() {
    const step = steps[at], seen = stage(at);
    if (picked !== null && !seen.has(picked)) picked = null;
    drawTree(seen, step);
    drawPanel(seen, picked !== null ? picked : step.node !== null ? step.node : [...seen.keys()].pop());
    element("text").textContent = step.text;
    element("bounds").textContent =
      `Best model so far: ${number(step.upper)}. Lower bound of the whole search: ${number(step.lower)}.`;
    element("count").textContent = `${at + 1} of ${steps.length}`;
    element("slider").value = at;
    element("first").disabled = element("back").disabled = at === 0;
    element("last").disabled = element("next").disabled = at === steps.length - 1;
  }

  function go(to) {
    at = Math.max(0, Math.min(steps.length - 1, to));
    picked = null;
    draw();
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    element("play").textContent = "▶ Play";
    element("play").setAttribute("aria-label", "Play");
  }

  function play() {
    if (timer !== null) return stop();
    if (at === steps.length - 1) go(0);
    element("play").textContent = "❚❚ Pause";
    element("play").setAttribute("aria-label", "Pause");
    timer = setInterval(() => (at === steps.length - 1 ? stop() : go(at + 1)), PAUSE);
  }

  const moves = { first: () => go(0), back: () => go(at - 1), next: () => go(at + 1), last: () => go(steps.length - 1) };
  for (const [id, move] of Object.entries(moves)) {
    element(id).addEventListener("click", () => {
      stop();
      move();
    });
  }
  element("play").addEventListener("click", play);
  element("whole").addEventListener("change", (event) => {
    element("tree").classList.toggle("whole", event.target.checked);
    draw();
  });
  element("slider").addEventListener("input", (event) => {
    stop();
    go(Number(event.target.value));
  });
  const keys = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last" };
  document.addEventListener("keydown", (event) => {
    if (event.target.tagName === "INPUT" || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === " " && event.target.tagName !== "BUTTON") {
      event.preventDefault();
      play();
    } else if (keys[event.key]) {
      event.preventDefault();
      stop();
      moves[keys[event.key]]();
    }
  });
  go(0);
})();
