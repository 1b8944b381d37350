"use strict";
// Everything on the page is there without this script, but for older snapshots: it moves the graph,
// shows values under the pointer, pages through snapshots, and keeps ages up to date. Text of others
// is only ever set as text.
(() => {
  const root = document.documentElement;
  root.classList.add("scripts");
  const byId = (id) => document.getElementById(id);
  const data = (id) => {
    const block = byId(id);
    return block ? JSON.parse(block.textContent) : null;
  };

  // Lengths of time and sizes, as `snaploom.site.quantities` writes them.
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const span = (ms) => {
    let seconds = Math.floor(Math.abs(ms) / 1000);
    const parts = [];
    for (const [length, unit] of units) {
      const count = Math.floor(seconds / length);
      seconds -= count * length;
      if (count) parts.push(`${count.toLocaleString("en")} ${unit}`);
    }
    return parts.slice(0, 2).join(" ") || "0 s";
  };
  const size = (bytes) => {
    const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let place = 0;
    while (Math.abs(bytes) >= 1024 && place < names.length - 1) { bytes /= 1024; place += 1; }
    const digits = place ? 1 : 0;
    return `${bytes.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${names[place]}`;
  };
  const instant = (ms) => {
    const time = new Date(ms);
    if (Number.isNaN(time.getTime())) return "beyond the calendar";
    const [date, clock] = time.toISOString().replace(".000Z", "").replace("Z", "").split("T");
    return clock === "00:00:00" ? date : `${date} ${clock.replace(/^(\d\d:\d\d):00$/, "$1")}`;
  };
  const number = (count) => count.toLocaleString("en");

  const ages = () => {
    for (const each of document.querySelectorAll("[data-since]")) {
      const age = Date.now() - Number(each.dataset.since);
      each.textContent = age >= 0 ? `${span(age)} ago` : `in ${span(age)}`;
    }
    for (const each of document.querySelectorAll("[data-expires]")) {
      if (Date.now() < Number(each.dataset.expires)) continue;
      each.textContent = "stale by now";
      each.className = "state bad";
    }
  };
  ages();
  setInterval(ages, 30000);

  // The graph: a pointer or the arrow keys move it, the wheel with Ctrl, two fingers or keys zoom.
  const graph = byId("join-drawing");
  if (graph) {
    const full = graph.viewBox.baseVal;
    const home = { x: full.x, y: full.y, width: full.width, height: full.height };
    const view = { ...home };
    const show = () => graph.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
    const zoom = (factor, at) => {
      const width = Math.min(Math.max(view.width * factor, 150), home.width * 3);
      const scale = width / view.width;
      const x = at ? at.x : view.x + view.width / 2;
      const y = at ? at.y : view.y + view.height / 2;
      view.x = x - (x - view.x) * scale;
      view.y = y - (y - view.y) * scale;
      view.width *= scale;
      view.height *= scale;
      show();
    };
    const fit = () => { Object.assign(view, home); show(); };
    const place = (event) => {
      const matrix = graph.getScreenCTM();
      return matrix ? new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse()) : null;
    };
    const pointers = new Map();
    let moved = 0;
    let apart = 0;
    graph.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, event);
      moved = 0;
      apart = 0;
    });
    window.addEventListener("pointermove", (event) => {
      const last = pointers.get(event.pointerId);
      if (!last) return;
      const from = place(last), to = place(event);
      if (!from || !to) return;
      pointers.set(event.pointerId, event);
      if (pointers.size === 2) {
        const [one, other] = [...pointers.values()];
        const distance = Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
        if (apart) zoom(apart / Math.max(distance, 1), to);
        apart = distance;
        return;
      }
      moved += Math.abs(event.clientX - last.clientX) + Math.abs(event.clientY - last.clientY);
      view.x -= to.x - from.x;
      view.y -= to.y - from.y;
      show();
    });
    for (const end of ["pointerup", "pointercancel"]) {
      window.addEventListener(end, (event) => { pointers.delete(event.pointerId); apart = 0; });
    }
    graph.addEventListener("dragstart", (event) => event.preventDefault());
    graph.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, place(event));
    }, { passive: false });
    graph.addEventListener("keydown", (event) => {
      const step = view.width / 12;
      const keys = {
        ArrowLeft: () => { view.x -= step; show(); }, ArrowRight: () => { view.x += step; show(); },
        ArrowUp: () => { view.y -= step; show(); }, ArrowDown: () => { view.y += step; show(); },
        "+": () => zoom(1 / 1.25), "-": () => zoom(1.25), "0": fit,
      };
      if (keys[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        keys[event.key]();
      }
    });
    for (const button of document.querySelectorAll("[data-zoom]")) {
      const acts = { in: () => zoom(1 / 1.4), out: () => zoom(1.4), fit };
      button.addEventListener("click", acts[button.dataset.zoom]);
    }
    // What is known about a source: under the pointer in short, opened by a click as a whole.
    const tip = byId("tip");
    for (const node of graph.querySelectorAll(".node")) {
      const title = node.querySelector("title");
      title.remove(); // else the browser's own hint covers ours
      const near = (event) => {
        tip.textContent = title.textContent;
        tip.hidden = false;
        const box = tip.getBoundingClientRect();
        const x = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
        tip.style.transform = `translate(${Math.max(4, x)}px, ${Math.max(4, event.clientY - box.height - 12)}px)`;
      };
      node.addEventListener("pointermove", (event) => event.pointerType === "mouse" && near(event));
      node.addEventListener("pointerleave", () => { tip.hidden = true; });
      node.addEventListener("click", (event) => {
        if (moved > 6) event.preventDefault();
      });
    }
  }
  const open = () => {
    const target = byId(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) {
      target.open = true;
      target.querySelector("summary").focus({ preventScroll: true });
      target.scrollIntoView({ block: "nearest" });
    }
  };
  window.addEventListener("hashchange", open);
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a[href^='#source-']");
    if (link && !event.defaultPrevented && link.getAttribute("href") === location.hash) open();
  });
  if (location.hash) open();

  // All parts that are closed are open on paper.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const each of closed) each.open = true;
  });
  window.addEventListener("afterprint", () => { for (const each of closed) each.open = false; });

  // The place in ascending numbers that is nearest to one.
  const nearest = (values, wanted) => {
    let low = 0, high = values.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] < wanted) low = middle + 1; else high = middle;
    }
    return low > 0 && wanted - values[low - 1] < values[low] - wanted ? low - 1 : low;
  };
  const along = (event, drawing) => {
    const box = drawing.getBoundingClientRect();
    return box.width ? Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) : 0;
  };

  for (const figure of document.querySelectorAll(".chart")) {
    const found = data(`${figure.id}-data`);
    const drawing = figure.querySelector("svg");
    const readout = figure.querySelector(".readout");
    if (!found || !found.t.length) continue;
    const first = found.t[0], last = found.t[found.t.length - 1];
    drawing.addEventListener("pointermove", (event) => {
      const place = nearest(found.t, first + (last - first) * along(event, drawing));
      const values = found.s.filter((line) => line.v[place] !== null);
      readout.textContent = `${instant(found.t[place])}: ` +
        values.map((line) => `${line.n} ${line.v[place]}`).join(", ");
    });
    drawing.addEventListener("pointerleave", () => { readout.textContent = ""; });
  }

  const sums = (steps) => {
    let sum = 0;
    return steps.map((step) => (sum += step));
  };
  const repeated = (runs) => runs.flatMap(([count, value]) => Array(count).fill(value));
  const list = data("snapshot-data");
  if (list) {
    const times = sums(list.t), created = sums(list.c);
    const marks = repeated(list.m).map((place) => list.marks[place]);
    const lags = Object.entries(list.s).map(([name, runs]) => [name, repeated(runs)]);
    const lanes = byId("lanes");
    if (lanes) {
      const readout = lanes.querySelector(".readout");
      const first = Number(lanes.dataset.first), last = Number(lanes.dataset.last);
      for (const drawing of lanes.querySelectorAll("svg")) {
        drawing.addEventListener("pointermove", (event) => {
          const at = first + (last - first) * along(event, drawing);
          // A snapshot stands for the time from its own on.
          let place = nearest(times, at);
          if (times[place] > at && place > 0) place -= 1;
          const mark = marks[place] ? `; ${marks[place]}` : "";
          readout.textContent = `${instant(times[place])}: ${number(list.r[place])} rows${mark}`;
        });
        drawing.addEventListener("pointerleave", () => { readout.textContent = ""; });
      }
    }
    const table = document.querySelector("table#snapshot-table");
    const paging = byId("paging");
    if (table && paging) {
      const body = table.tBodies[0];
      const until = byId("until"), notable = byId("notable"), shown = byId("shown");
      const newer = byId("newer"), older = byId("older");
      let begin = 0;
      let chosen = [];
      const sources = (place) => {
        const other = lags.filter(([, values]) => values[place]);
        const words = other.map(([name, values]) =>
          `${name} ${instant(times[place] - values[place])}, ${span(values[place])} ${values[place] > 0 ? "before" : "after"}`);
        return words.join("; ") || "same time";
      };
      const row = (place) => {
        const line = document.createElement("tr");
        const cells = [
          instant(times[place]), number(list.r[place]), size(list.b[place]), number(list.f[place]),
          instant(Math.floor(created[place] / 60000) * 60000),
          sources(place), marks[place],
        ];
        cells.forEach((text, column) => {
          const cell = document.createElement(column ? "td" : "th");
          if (column) {
            cell.textContent = text;
          } else {
            cell.scope = "row";
            cell.appendChild(document.createElement("code")).textContent = text;
          }
          if (column >= 1 && column <= 3) cell.className = "number";
          line.appendChild(cell);
        });
        return line;
      };
      const draw = () => {
        const part = chosen.slice(begin, begin + list.page);
        body.replaceChildren(...part.map(row));
        newer.disabled = begin === 0;
        older.disabled = begin + list.page >= chosen.length;
        shown.textContent = chosen.length
          ? `${number(begin + 1)} to ${number(begin + part.length)} of ${number(chosen.length)}`
          : "none";
      };
      const choose = () => {
        const typed = until.value.trim();
        const day = /^\d{4}-\d{2}-\d{2}$/.test(typed);
        const limit = typed ? Date.parse(day ? `${typed}T23:59:59.999Z` : typed) : Infinity;
        until.setAttribute("aria-invalid", String(Number.isNaN(limit)));
        const bound = Number.isNaN(limit) ? Infinity : limit;
        chosen = [];
        for (let place = times.length - 1; place >= 0; place -= 1) {
          if (times[place] <= bound && (!notable.checked || marks[place])) chosen.push(place);
        }
        begin = 0;
        draw();
      };
      paging.addEventListener("submit", (event) => event.preventDefault());
      until.addEventListener("input", choose);
      notable.addEventListener("change", choose);
      newer.addEventListener("click", () => { begin = Math.max(0, begin - list.page); draw(); });
      older.addEventListener("click", () => { begin += list.page; draw(); });
      choose();
    }
  }

  for (const filter of document.querySelectorAll("[data-filters]")) {
    const found = byId(filter.dataset.filters);
    const rows = found ? [...found.tBodies[0].rows] : [];
    filter.addEventListener("input", () => {
      const wanted = filter.value.trim().toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }

  // A page that is served asks whether there is anything new, and loads it; never while somebody types.
  const version = document.querySelector("meta[name='snaploom-version']");
  if (version) {
    setInterval(async () => {
      if (document.hidden || (document.activeElement && document.activeElement.tagName === "INPUT")) return;
      try {
        const answer = await fetch(location.pathname, { method: "HEAD", cache: "no-store" });
        const now = answer.headers.get("x-snaploom-version");
        if (now && now !== version.content) location.reload();
      } catch { /* the server is away: the page stays as it is */ }
    }, 5000);
  }
})();
