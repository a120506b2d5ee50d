"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const ROW = 48; // height of a row of the list, in pixels, as in the style sheet

// el makes an element. Text goes in as text, never as markup: it comes from programs.
function el(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes || {})) if (v !== undefined && v !== false) e.setAttribute(k, v);
  e.append(...children.filter(c => c !== undefined && c !== null && c !== ""));
  return e;
}
function svg(name, attributes, ...children) {
  const e = document.createElementNS(SVG, name);
  for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
  e.append(...children);
  return e;
}
const plural = (n, one, many) => n === 1 ? "1 " + one : n + " " + (many || one + "s");

// The list: findings that pass the filters, below a row for each severity and kind. Only rows in view are elements.
const order = ["error", "warning", "info"];
const bySeverity = (a, b) => order.indexOf(a.severity) - order.indexOf(b.severity) || (a.kind < b.kind ? -1 : a.kind > b.kind ? 1 : 0);
const hidden = new Set(), folded = new Set();
let rows = [], current = null;

data.findings.forEach((f, i) => {
  f.index = i;
  f.haystack = [f.id, f.kind, f.title, f.severity, ...f.sides.flatMap(s => [s.where, s.kernel, s.object, s.who])].join("\n").toLowerCase();
});

function filter() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(w => w), kind = $("kind").value;
  const groups = new Map();
  let shown = 0;
  for (const f of data.findings) {
    if (kind && f.kind !== kind || hidden.has(f.suppressed ? "suppressed" : f.severity) || !words.every(w => f.haystack.includes(w))) continue;
    const key = f.severity + " " + f.kind;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(f);
    shown++;
  }
  const keys = [...groups.keys()].sort((a, b) => order.indexOf(a.split(" ")[0]) - order.indexOf(b.split(" ")[0]) || groups.get(b).length - groups.get(a).length || (a < b ? -1 : 1));
  rows = [];
  for (const key of keys) {
    rows.push({head: key, n: groups.get(key).length});
    if (!folded.has(key)) for (const f of groups.get(key)) rows.push({f});
  }
  $("shown").textContent = shown === data.findings.length ? plural(shown, "finding") : shown + " of " + plural(data.findings.length, "finding");
  $("rows").style.height = rows.length * ROW + "px";
  draw();
}

function draw() {
  const list = $("list"), from = Math.max(0, Math.floor(list.scrollTop / ROW) - 4);
  const to = Math.min(rows.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + 4);
  const out = [];
  for (let i = from; i < to; i++) {
    const r = rows[i];
    let e;
    if (r.head) {
      const [severity, kind] = r.head.split(" ");
      e = el("div", {class: "row head", "aria-expanded": String(!folded.has(r.head)), role: "button"},
        el("div", {class: severity}, (folded.has(r.head) ? "▸ " : "▾ ") + severity + ": " + kind + " (" + r.n + ")"));
      e.onclick = () => { folded.has(r.head) ? folded.delete(r.head) : folded.add(r.head); filter(); };
    } else {
      const s = r.f.sides[0];
      e = el("div", {class: "row" + (r.f.suppressed ? " gone" : ""), role: "option", id: "row-" + r.f.index, "aria-selected": String(r.f === current)},
        el("div", {}, r.f.title), el("div", {}, el("small", {}, (s ? s.where : r.f.id) + (r.f.suppressed ? ", suppressed" : ""))));
      e.onclick = () => select(r.f);
    }
    e.style.top = i * ROW + "px";
    out.push(e);
  }
  $("rows").replaceChildren(...out);
  current && $("row-" + current.index) ? $("list").setAttribute("aria-activedescendant", "row-" + current.index) : $("list").removeAttribute("aria-activedescendant");
}

function select(f, quiet) {
  current = f;
  const i = rows.findIndex(r => r.f === f), list = $("list");
  if (i >= 0) {
    if (i * ROW < list.scrollTop) list.scrollTop = i * ROW - ROW;
    if ((i + 1) * ROW > list.scrollTop + list.clientHeight) list.scrollTop = (i + 1) * ROW - list.clientHeight;
  }
  draw();
  $("detail").replaceChildren(...(f ? finding(f) : overview()));
  $("detail").scrollTop = 0;
  if (!quiet) history.replaceState(null, "", f ? "#" + f.id : "#");
  if (!quiet && f && matchMedia("(max-width: 760px)").matches) $("detail").scrollIntoView();
}

function step(by) {
  const at = rows.findIndex(r => r.f && r.f === current);
  for (let i = at + by; i >= 0 && i < rows.length; i += by) if (rows[i].f) return select(rows[i].f);
}

// The overview.
function overview() {
  const out = [el("h2", {}, "Overview")];
  const pairs = [["Verdict", data.verdict], ["Result", data.last]];
  if (data.command) pairs.push(["Command", el("code", {}, data.command)]);
  if (data.detectors.length) pairs.push(["Detectors", data.detectors.join(", ")]);
  if (data.verify) pairs.push(["Explored", plural(data.verify.executions, "complete execution") + ", " + data.verify.blocked + " blocked, model " + data.verify.model]);
  if (data.trace) pairs.push(["Trace", `${plural(data.trace.events, "event")} of ${plural(data.trace.threads, "thread")}, ${plural(data.trace.variables, "variable")}`]);
  const seconds = data.kernels.reduce((n, k) => n + (k.seconds || 0), 0);
  if (data.kernels.length) pairs.push(["Time", seconds ? seconds.toFixed(3) + " s in kernels" : "not written, so that equal runs give equal pages; --times writes it"]);
  if (data.version) pairs.push(["Fencepost", data.version]);
  out.push(definitions(pairs));
  const kinds = new Map();
  for (const f of [...data.findings].sort(bySeverity)) { const k = f.severity + " " + f.kind; kinds.set(k, (kinds.get(k) || 0) + 1); }
  if (kinds.size) out.push(el("h3", {}, "Findings"), table(["severity", "kind", "findings"], [...kinds].map(([k, n]) => [el("span", {class: k.split(" ")[0]}, k.split(" ")[0]), k.split(" ")[1], n])));
  if (!data.verify && !data.trace) out.push(el("h3", {}, "Kernels"), data.kernels.length ? table(["kernel", "grid", "block", "launches"].concat(data.kernels.some(k => k.seconds) ? ["seconds"] : []),
    data.kernels.map(k => [el("code", {}, k.name), k.grid, k.block, k.launches].concat(data.kernels.some(k => k.seconds) ? [(k.seconds || 0).toFixed(3)] : []))) : el("p", {}, "No kernel ran."));
  out.push(el("h3", {}, "Not checked"), data.skipped.length ? table(["what", "why"], data.skipped.map(s => [s.what, s.reason])) : el("p", {}, "Everything that ran was checked."));
  const repair = data.verify && data.verify.repair;
  if (repair) {
    out.push(el("h3", {}, "Repair"), el("p", {}, repair.reason || "The smallest change that was found, and what exploring the changed source came to: " + (repair.verdict || "not explored") + "."),
      el("ul", {}, ...repair.changes.map(c => el("li", {}, c))));
    if (repair.diff) out.push(patch(repair.diff));
  }
  if (data.notes.length) out.push(el("h3", {}, "Notes"), el("ul", {}, ...data.notes.map(n => el("li", {}, n))));
  return out;
}
const definitions = pairs => el("dl", {}, ...pairs.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)]));
const table = (head, lines) => el("table", {}, el("thead", {}, el("tr", {}, ...head.map(h => el("th", {scope: "col"}, h)))),
  el("tbody", {}, ...lines.map(l => el("tr", {}, ...l.map(c => el("td", {}, c instanceof Node ? c : String(c)))))));

// patch draws a unified diff.
function patch(text) {
  const kind = l => /^(---|\+\+\+|@@)/.test(l) ? "o" : l[0] === "+" ? "add" : l[0] === "-" ? "del" : undefined;
  return el("pre", {class: "diff", tabindex: "0", role: "region", "aria-label": "Change of the source"}, ...text.trimEnd().split("\n").map(l => el("span", {class: kind(l)}, l + "\n")));
}

// A finding.
function finding(f) {
  const out = [el("h2", {}, el("span", {class: f.severity}, f.severity + (f.predicted ? " (predicted)" : "") + ": "), f.title)];
  if (f.suppressed) out.push(el("p", {}, "Suppressed ", f.suppressed, "."));
  const why = f.notes.find(n => n[0] === "why");
  if (why) out.push(el("p", {}, why[1]));
  out.push(...sources(f));
  if (f.fix) out.push(el("h3", {}, "Fix"), el("p", {class: "fix"}, f.fix));
  const repair = data.verify && data.verify.repair;
  if (f.patch) out.push(el("p", {}, "As a change of the source:"), patch(f.patch));
  else if (repair && repair.diff) out.push(el("p", {}, "The repair that mends all findings:"), patch(repair.diff));
  if (f.graph) out.push(el("h3", {}, "Execution"), execution(f), el("details", {}, el("summary", {}, "As text"), el("pre", {}, f.graph)));
  const line = f.first >= 0 ? timeline(f) : null;
  if (line) out.push(el("h3", {}, "Order of events"), line);
  const map = threads(f);
  if (map.length) out.push(el("h3", {}, "Threads"), el("div", {class: "pair"}, ...map));
  const picture = memory(f);
  if (picture) out.push(el("h3", {}, "Memory"), picture);
  out.push(el("h3", {}, "Facts"), definitions(f.notes.filter(n => n !== why).concat([["kind", f.kind]])));
  const same = data.findings.filter(g => g !== f && g.group && g.group === f.group);
  if (same.length) {
    out.push(el("h3", {}, "Of the same cause"), el("ul", {}, ...same.slice(0, 20).map(g => {
      const a = el("a", {href: "#" + g.id}, g.title);
      return el("li", {}, a, " ", el("small", {}, g.sides.map(s => s.where).join("; ")));
    })));
    if (same.length > 20) out.push(el("p", {}, "and " + plural(same.length - 20, "more finding")));
  }
  if (data.command) out.push(el("h3", {}, "To see it again"), el("pre", {class: "wrap"}, data.command));
  if (data.help[f.kind]) out.push(el("details", {}, el("summary", {}, "What does " + f.kind + " mean?"), el("pre", {class: "wrap"}, data.help[f.kind].trim())));
  return out;
}

// The sources: both lines in one excerpt if they are near each other.
function sources(f) {
  const parts = [];
  f.sides.forEach((s, i) => {
    if (!s.file) {
      parts.push({plain: el("p", {}, el("span", {class: "a" + Math.min(i, 1)}, s.what), " at " + s.where)});
      return;
    }
    const near = parts.find(p => p.file === s.file && p.marks.some(m => Math.abs(m.line - s.line) <= 12));
    near ? near.marks.push({...s, i}) : parts.push({file: s.file, marks: [{...s, i}]});
  });
  return parts.map(p => p.plain || excerpt(p)).concat(f.sides.filter(s => s.calls && s.calls.length).map(s =>
    el("details", {}, el("summary", {}, "How " + s.who + " came there"), el("ul", {}, ...s.calls.slice(0, 40).map(c => el("li", {}, c))))));
}

function excerpt(p) {
  const text = data.sources[p.file], lines = p.marks.map(m => m.line), at = [];
  for (let n = Math.min(...lines) - 6; n <= Math.max(...lines) + 6; n++) if (text[n] !== undefined) at.push(n);
  const body = el("div", {});
  const state = {comment: false};
  for (const n of at) {
    const marks = p.marks.filter(m => m.line === n), cls = marks.length ? " m" + Math.min(marks[0].i, 1) : "";
    body.append(el("div", {class: cls.trim() || undefined}, el("span", {class: "n"}, String(n)), el("span", {class: "c"}, ...colour(text[n], marks, state))));
    for (const m of marks) {
      const space = text[n].slice(0, m.from || 0).replace(/[^\t]/g, " ");
      body.append(el("div", {class: "m" + Math.min(m.i, 1) + " say"}, el("span", {class: "n"}), el("span", {class: "c"}, space + "^ " + m.what)));
    }
  }
  return el("figure", {}, el("figcaption", {}, el("code", {}, p.marks.map(m => m.where).filter((w, i, a) => a.indexOf(w) === i).join(", "))), el("div", {class: "src", tabindex: "0", role: "region", "aria-label": "Source " + p.file}, body));
}

const word = /^(alignas|auto|bool|break|case|char|class|const|constexpr|continue|default|delete|do|double|else|enum|extern|false|float|for|goto|if|inline|int|long|namespace|new|nullptr|operator|private|public|register|return|short|signed|sizeof|static|struct|switch|template|this|true|typedef|typename|union|unsigned|using|void|volatile|while|__[a-z]\w*__|size_t|u?int(8|16|32|64)_t|threadIdx|blockIdx|blockDim|gridDim|warpSize)$/;
const tokens = /\/\/.*|\/\*.*?(?:\*\/|$)|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'|^\s*#\s*\w+|\b\d[\w.]*|[A-Za-z_]\w*|\s+|./gu;

// colour gives the parts of a line of C++, with what a side does underlined.
function colour(line, marks, state) {
  const parts = [];
  let rest = line, at = 0;
  if (state.comment) {
    const end = line.indexOf("*/");
    const n = end < 0 ? line.length : end + 2;
    parts.push([line.slice(0, n), "o"]);
    state.comment = end < 0;
    rest = line.slice(n);
  }
  for (const [t] of rest.matchAll(tokens)) {
    let c = "";
    if (t.startsWith("//") || t.startsWith("/*")) { c = "o"; state.comment = t.startsWith("/*") && !t.endsWith("*/"); }
    else if (/^["']/.test(t)) c = "s";
    else if (/^\d/.test(t)) c = "d";
    else if (/^\s*#/.test(t) || word.test(t)) c = "k";
    parts.push([t, c]);
  }
  const out = [];
  for (const [t, c] of parts) {
    const node = c ? el("span", {class: c}, t) : document.createTextNode(t);
    out.push(marks.some(m => m.to > m.from && at >= m.from && at < m.to) ? el("u", {}, node) : node);
    at += t.length;
  }
  return out;
}

// The timeline: a column for each thread, from top to bottom in the order of the thread, and the edge that is missing.
function timeline(f) {
  const [a, b] = [f.sides[f.first], f.sides[1 - f.first]], colors = f.first ? ["second", "first"] : ["first", "second"], W = 640, col = [150, 490];
  const g = svg("svg", {viewBox: `0 0 ${W} 230`, width: W, class: "wide", role: "img"});
  const name = `${a.who}: ${a.op}${a.sync ? ", then " + a.sync : ", then nothing that synchronises"}. ${b.who}: ${b.sync ? b.sync + ", then " : "nothing that synchronises, then "}${b.op}. No edge leads from the first to the second.`;
  g.append(svg("title", {}, name));
  const events = [[[70, a.op + (a.size ? " " + plural(a.size, "byte") : ""), colors[0]], [130, a.sync || "no synchronisation", a.sync ? "soft" : ""]],
    [[130, b.sync || "no synchronisation", b.sync ? "soft" : ""], [190, b.op + (b.size ? " " + plural(b.size, "byte") : ""), colors[1]]]];
  [a, b].forEach((s, i) => {
    g.append(svg("text", {x: col[i], y: 18, "text-anchor": "middle", "font-weight": 600, style: `fill: var(--${colors[i]})`}, s.who),
      svg("text", {x: col[i], y: 36, "text-anchor": "middle", style: "fill: var(--soft)"}, s.launch ? s.kernel + ", launch " + s.launch : ""),
      svg("line", {x1: col[i], y1: 46, x2: col[i], y2: 220, style: "stroke: var(--line); stroke-width: 2"}));
    for (const [y, text, color] of events[i]) {
      const wide = Math.min(285, 20 + text.length * 6.6), cut = text.length > 42 ? text.slice(0, 41) + "…" : text;
      const box = svg("rect", {x: col[i] - wide / 2, y: y - 14, width: wide, height: 26, rx: 4, style: `fill: var(--panel); stroke: var(--${color || "line"}); ${color ? "" : "stroke-dasharray: 4 3"}`});
      box.append(svg("title", {}, text));
      g.append(box, svg("text", {x: col[i], y: y + 4, "text-anchor": "middle", "font-size": 11, style: color ? "" : "fill: var(--soft)"}, cut));
    }
  });
  g.append(svg("path", {d: `M ${col[0]} 148 C ${col[0] + 60} 205, ${col[1] - 200} 200, ${col[1] - 75} 192`, fill: "none", style: "stroke: var(--error); stroke-width: 2; stroke-dasharray: 7 5"}),
    svg("path", {d: `M ${col[1] - 75} 192 l -11 -6 l 1 11 z`, style: "fill: var(--error)"}),
    svg("text", {x: (col[0] + col[1]) / 2 - 20, y: 222, "text-anchor": "middle", style: "fill: var(--error)"}, "missing: nothing orders the first before the second"));
  return el("figure", {}, g);
}

// The execution graph of verify, from its text: a column for each thread, a row for each event, an edge from a write to each read of it
// by another thread, and a broken line between the two events of the finding.
function execution(f) {
  const lines = f.graph.split("\n").filter(l => l.trim()), heads = [...lines[0].matchAll(/\S+(?: \S+)*/g)].map(m => ({at: m.index, name: m[0]}));
  const events = lines.slice(1).map((l, row) => {
    const m = l.match(/^\s*(>?)\s*(\d+)\s+(.*)$/);
    if (!m || !heads.length) return null;
    const at = l.length - m[3].length, column = heads.findLastIndex(h => h.at <= at), from = m[3].match(/^(.*) <- (\d+)$/);
    return {row, column: Math.max(column, 0), n: m[2], mark: !!m[1], text: from ? from[1] : m[3].replace("<- initial value", "(initial)"), from: from && from[2]};
  });
  if (!events.length || events.includes(null)) return el("pre", {}, f.graph);
  const wide = 250, H = 46 + 34 * events.length, W = wide * heads.length, x = e => wide * (e.column + .5), y = e => 52 + 34 * e.row, by = new Map(events.map(e => [e.n, e]));
  const g = svg("svg", {viewBox: `0 0 ${W} ${H}`, width: W, class: "wide", role: "img"});
  g.append(svg("title", {}, "Execution graph: " + events.map(e => `${e.n} ${heads[e.column].name}: ${e.text}${e.from ? " reads from " + e.from : ""}`).join("; ")));
  heads.forEach((h, i) => g.append(svg("text", {x: wide * (i + .5), y: 16, "text-anchor": "middle", "font-weight": 600}, h.name),
    svg("line", {x1: wide * (i + .5), y1: 26, x2: wide * (i + .5), y2: H, style: "stroke: var(--line); stroke-width: 2"})));
  const edge = (a, b, style) => g.append(svg("path", {d: `M ${x(a) + (b.column > a.column ? 100 : -100)} ${y(a)} L ${x(b) + (b.column > a.column ? -104 : 104)} ${y(b)}`, fill: "none", style}));
  for (const e of events) if (e.from && by.has(e.from) && by.get(e.from).column !== e.column) edge(by.get(e.from), e, "stroke: var(--ok); stroke-width: 2");
  const pair = events.filter(e => e.mark);
  if (pair.length === 2 && pair[0].column !== pair[1].column) edge(pair[0], pair[1], "stroke: var(--error); stroke-width: 2; stroke-dasharray: 7 5");
  for (const e of events) {
    const box = svg("rect", {x: x(e) - 100, y: y(e) - 13, width: 200, height: 26, rx: 4, style: `fill: var(--panel); stroke: var(--${e.mark ? "error" : "line"}); stroke-width: ${e.mark ? 2 : 1}`});
    box.append(svg("title", {}, e.text));
    g.append(box, svg("text", {x: x(e), y: y(e) + 4, "text-anchor": "middle", "font-size": 11}, e.n + "  " + (e.text.length > 34 ? e.text.slice(0, 33) + "…" : e.text)));
  }
  return el("figure", {}, g, el("figcaption", {}, el("span", {class: "clean"}, "— from a write to a read of it"), pair.length === 2 ? el("span", {class: "error"}, "  - - nothing orders the two") : ""));
}

// The grid of blocks, and the threads of a block as warps and lanes, for each launch. Shades are the races that each had a part in,
// where the detector counted them; otherwise the accesses of the findings of the same cause.
function threads(f) {
  const key = s => [s.kernel, s.launch, s.grid, s.shape].join(" ");
  const sides = f.sides.map((s, i) => ({...s, i: Math.min(i, 1)})).filter(s => s.grid);
  const launches = [...new Set(sides.map(key))];
  const linear = (p, d) => p[0] + d[0] * (p[1] + d[1] * p[2]);
  const group = data.findings.filter(g => g === f || g.group && g.group === f.group);
  const count = (m, i, n) => m.set(i, (m.get(i) || 0) + n);
  return launches.flatMap(launch => {
    const marks = sides.filter(s => key(s) === launch), {grid, shape} = marks[0], counted = marks.filter(s => s.took);
    const blocks = new Map(), lanes = new Map();
    for (const s of counted) {
      expand(s.took.blocks, (i, n) => count(blocks, i, n));
      expand(s.took.threads, (i, n) => count(lanes, i, n));
    }
    const per = counted.length ? counted[0].took.per || 1 : Math.max(1, Math.ceil(grid[0] * grid[1] * grid[2] / 2048));
    if (!counted.length) for (const s of group.flatMap(g => g.sides.filter(s => s.grid && key(s) === launch))) {
      count(blocks, Math.floor(linear(s.block, grid) / per), 1);
      count(lanes, linear(s.thread, shape), 1);
    }
    const of = counted.length ? n => `about ${plural(n, "race")}` : n => plural(n, "access", "accesses") + " of findings of this cause";
    const name = launches.length > 1 ? `Launch ${marks[0].launch}: b` : "B";
    const width = grid[1] * grid[2] === 1 ? Math.min(grid[0], 32) : grid[0];
    return [heat(name + `locks of the grid (${grid.join(", ")})`, grid[0] * grid[1] * grid[2], width, blocks, marks.map(s => [linear(s.block, grid), s.i]), "block", per, of),
      heat(`Threads of a block (${shape.join(", ")}): a row is a warp`, shape[0] * shape[1] * shape[2], 32, lanes, marks.map(s => [linear(s.thread, shape), s.i]), "thread", 1, of)];
  });
}

// expand calls f for each number of runs that is not 0, with about the count that it stands for.
function expand(runs, f) {
  let i = 0;
  for (let r = 0; r < runs.length; r += 2) {
    if (runs[r + 1]) for (let k = 0; k < runs[r]; k++) f(i + k, 2 ** (runs[r + 1] - 1));
    i += runs[r];
  }
}

// heat draws count things in rows, per to a cell; seen gives the shades of cells.
function heat(title, count, width, seen, marks, what, per, of) {
  const columns = Math.min(per > 1 ? 32 : width, 64), cells = Math.ceil(count / per), lines = Math.ceil(cells / columns), size = columns > 32 ? 8 : 11;
  const most = Math.max(1, ...seen.values());
  const g = svg("svg", {viewBox: `0 0 ${columns * size + 2} ${lines * size + 2}`, width: columns * size + 2, role: "img"});
  const first = marks.map(([i, k]) => `${what} ${i} (${k ? "second" : "first"} access)`).join(", ");
  g.append(svg("title", {}, `${title}: ${first}; ${seen.size} of ${plural(cells, "cell")} took part`));
  for (let c = 0; c < cells; c++) {
    const v = seen.get(c) || 0, x = 1 + c % columns * size, y = 1 + Math.floor(c / columns) * size;
    const r = svg("rect", {x, y, width: size - 2, height: size - 2, style: v ? `fill: var(--warning); fill-opacity: ${0.25 + 0.6 * Math.log1p(v) / Math.log1p(most)}` : "fill: var(--line); fill-opacity: .5"});
    if (v) r.append(svg("title", {}, `${what} ${c * per}${per > 1 ? " to " + (Math.min(count, (c + 1) * per) - 1) : ""}: ${of(v)}`));
    g.append(r);
  }
  const drawn = new Map();
  for (const [i, k] of marks) {
    const c = Math.floor(i / per), x = 1 + c % columns * size, y = 1 + Math.floor(c / columns) * size, inset = drawn.has(c) ? 2.5 : 0;
    drawn.set(c, true);
    g.append(svg("rect", {x: x + inset, y: y + inset, width: size - 2 - 2 * inset, height: size - 2 - 2 * inset, style: `fill: none; stroke: var(--${k ? "second" : "first"}); stroke-width: 2`}));
  }
  return el("figure", {}, el("figcaption", {}, title + (per > 1 ? `, ${per} to a cell` : "")), g, el("p", {}, ...marks.map(([i, k]) => el("span", {class: "a" + k}, `▢ ${what} ${i} `)), `${seen.size} of ${cells} took part`));
}

// The memory that both touch: where it lies in the allocation, and which bytes overlap.
function memory(f) {
  const sides = f.sides.filter(s => s.size && s.size <= 4096);
  if (!sides.length) return null;
  const W = 640, base = Math.min(...sides.map(s => s.offset || 0)), end = Math.max(...sides.map(s => (s.offset || 0) + s.size));
  const s0 = sides.find(s => s.object) || sides[0], named = s0.object || s0.space + " memory";
  if (sides.some(s => (s.object || "") !== (sides[0].object || "")) || end - base > 4096) return null;
  const bytes = Math.max(end - base, 1), unit = Math.min(36, W / bytes), both = sides.length === 2;
  const overlap = both ? Math.max(0, Math.min(...sides.map(s => (s.offset || 0) + s.size)) - Math.max(...sides.map(s => s.offset || 0))) : 0;
  const g = svg("svg", {viewBox: `0 0 ${W} ${40 + 32 * sides.length}`, width: W, role: "img"});
  g.append(svg("title", {}, `${named}: bytes ${base} to ${end - 1}` + (both ? `, of which ${overlap} are touched by both` : "")));
  if (s0.of) {
    const x = Math.min(W - 3, base / s0.of * W);
    g.append(svg("rect", {x: 0, y: 4, width: W, height: 16, style: "fill: var(--panel); stroke: var(--line)"}),
      svg("rect", {x, y: 2, width: Math.max(3, Math.min(W - x, bytes / s0.of * W)), height: 20, style: "fill: var(--warning)"}));
  }
  sides.forEach((s, i) => {
    const y = 46 + i * 32;
    for (let b = 0; b < Math.min(s.size, 256); b++) g.append(svg("rect", {x: ((s.offset || 0) - base + b) * unit, y, width: Math.max(unit - 1.5, 1), height: 18, style: `fill: var(--${f.sides.indexOf(s) ? "second" : "first"}); fill-opacity: .75`}));
    const x = ((s.offset || 0) - base + s.size) * unit + 6;
    g.append(svg("text", x < W - 160 ? {x, y: y + 13} : {x: W - 4, y: y - 3, "text-anchor": "end"}, `${s.op} at byte ${s.offset || 0}`));
  });
  const hex = s0.object ? "" : " (addresses)", strides = pattern(f);
  return el("figure", {}, el("figcaption", {}, named + (s0.of ? ", " + plural(s0.of, "byte") : "") + (s0.space ? " of " + s0.space + " memory" : "") + hex + ": " + (both ? plural(overlap, "byte") + " touched by both" : "bytes " + base + " to " + (end - 1))), g, ...strides);
}

// The addresses of neighbours: a row for each side, a box for the access of each thread or block that is known.
function pattern(f) {
  const sides = f.sides.map((s, i) => ({...s, i: Math.min(i, 1)})).filter(s => s.took && s.took.at && s.took.at.length > 1);
  if (!sides.length) return [];
  const all = sides.flatMap(s => s.took.at.map(a => a[1])), from = Math.min(...all), to = Math.max(...sides.flatMap(s => s.took.at.map(a => a[1] + s.size))), W = 640;
  const x = at => (at - from) / (to - from) * W;
  return sides.map(s => {
    const g = svg("svg", {viewBox: `0 0 ${W} 18`, width: W, role: "img"});
    g.append(svg("title", {}, `${s.op}, by ${s.took.of}: ${s.took.pattern}`), svg("rect", {x: 0, y: 0, width: W, height: 18, style: "fill: var(--panel)"}));
    for (const [n, at] of s.took.at) {
      const box = svg("rect", {x: x(at), y: 2, width: Math.max(2, x(at + s.size) - x(at) - 1), height: 14, style: `fill: var(--${s.i ? "second" : "first"}); fill-opacity: .75`});
      box.append(svg("title", {}, `${s.took.of} ${n}: byte ${at}`));
      g.append(box);
    }
    return el("div", {}, el("p", {class: "a" + s.i}, `${s.op}: ${s.took.pattern}`), g);
  });
}

// The start.
function start() {
  $("verdict").textContent = data.last;
  $("verdict").className = data.verdict === "clean" ? "clean" : data.verdict === "findings" ? "error" : "warning";
  const kinds = new Map();
  for (const f of data.findings) kinds.set(f.kind, (kinds.get(f.kind) || 0) + 1);
  $("kind").append(el("option", {value: ""}, "all"), ...[...kinds].sort().map(([k, n]) => el("option", {value: k}, `${k} (${n})`)));
  for (const s of [...order, "suppressed"]) {
    if (!data.findings.some(f => (f.suppressed ? "suppressed" : f.severity) === s)) continue;
    const box = el("input", {type: "checkbox", checked: ""});
    box.onchange = () => { box.checked ? hidden.delete(s) : hidden.add(s); filter(); };
    $("severities").append(el("label", {class: s}, box, s));
  }
  $("search").oninput = $("kind").onchange = () => { $("list").scrollTop = 0; filter(); };
  $("filters").onsubmit = e => { e.preventDefault(); const r = rows.find(r => r.f); if (r) { select(r.f); $("list").focus(); } };
  $("list").onscroll = draw;
  onresize = draw;
  document.documentElement.classList.toggle("dark", matchMedia("(prefers-color-scheme: dark)").matches);
  $("theme").onclick = () => document.documentElement.classList.toggle("dark");
  const open = () => select(data.findings.find(f => "#" + f.id === location.hash) || null, true);
  onhashchange = open;
  let dark = false;
  onbeforeprint = () => {
    dark = document.documentElement.classList.contains("dark");
    document.documentElement.classList.remove("dark");
    if (current) return; // the finding that is looked at is printed alone
    const list = rows.filter(r => r.f).map(r => r.f), most = 100;
    $("detail").append(...list.slice(0, most).map(f => el("section", {}, ...finding(f))), list.length > most ? el("p", {}, `${list.length - most} more findings are not printed; filters choose.`) : "");
  };
  onafterprint = () => { document.documentElement.classList.toggle("dark", dark); if (!current) $("detail").replaceChildren(...overview()); };
  document.onkeydown = e => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const typing = /^(INPUT|SELECT)$/.test(document.activeElement.tagName) && document.activeElement.type !== "checkbox";
    if (e.key === "Escape") { $("search").value = ""; $("kind").value = ""; filter(); document.activeElement.blur(); }
    else if (typing) return;
    else if (e.key === "/") { $("search").focus(); e.preventDefault(); }
    else if (e.key === "j" || e.key === "ArrowDown" && document.activeElement === $("list")) { step(1); e.preventDefault(); }
    else if (e.key === "k" || e.key === "ArrowUp" && document.activeElement === $("list")) { step(-1); e.preventDefault(); }
    else if (e.key === "o") select(null);
  };
  filter();
  open();
}
start();
