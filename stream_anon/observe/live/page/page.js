// The live page: takes one status a second from /api/events and shows it. Asks for nothing else, changes nothing.

import { bars, delays, html, percent, quantile, rates, seconds, short, table, trend } from "/charts.js";

const SILENT = 3500; // milliseconds without a message after which the page says so
const AGAIN = 3000; // milliseconds between questions while no stream is to be had
const MARKS = { good: "✓", warn: "!", bad: "✗", idle: "…" };
const TONES = {
  reading: "good", working: "good", paused: "warn", restoring: "warn", starting: "warn", incomplete: "warn",
  stopping: "warn", quarantined: "bad", stalled: "bad", gone: "bad", ended: "idle",
};
const MOST_ROWS = 40;

const byId = (id) => document.getElementById(id);
let last = 0, status = null, ended = false;

function say(id, text) {
  const element = byId(id);
  if (element.textContent !== text) element.textContent = text;
}

function put(id, element) {
  byId(id).replaceChildren(element);
}

function hero(tone, title, detail, remedy) {
  byId("hero").dataset.tone = tone;
  say("mark", MARKS[tone]);
  if (byId("title").textContent !== title) say("spoken", `${title}. ${detail}`); // read aloud when it changes only
  say("title", title);
  say("detail", detail);
  say("remedy", remedy);
  byId("remedy").hidden = !remedy;
  document.title = `${MARKS[tone]} ${title} · ${status?.policy.name ?? "stream-anon"}`;
}

function line(state, text) {
  byId("line").dataset.state = state;
  say("line-text", text);
  document.body.classList.toggle("stale", state === "lost");
}

function figure(id, text, bad) {
  say(id, text);
  byId(id).className = bad ? "bad" : "";
}

function state(word) {
  const made = html("span", { className: "state" }, word);
  made.dataset.tone = TONES[word] ?? "idle";
  return made;
}

function headline({ verdict, totals, policy, delays: waits, longest }) {
  hero(verdict.tone, verdict.title, verdict.detail, verdict.remedy);
  figure("violations", short(totals.violations), totals.violations > 0);
  figure("missed", short(totals.missed), totals.missed > 0);
  const p99 = quantile(waits, 0.99);
  const shown = Number.isNaN(p99) ? longest : Math.min(p99, longest);
  say("slowest-name", Number.isNaN(p99) ? "longest delay" : "99 % leave within");
  figure("slowest", totals.published ? seconds(shown) : "–", policy.bound !== null && shown > policy.bound);
}

function numbers({ rates: { consumed, published, step }, waiting, policy, losses }) {
  const span = Math.max(1, Math.round(10 / step));
  const mean = (values) => values.slice(-span - 1, -1).reduce((sum, value) => sum + value, 0) / span;
  say("rate-in", short(mean(consumed)));
  say("rate-out", short(mean(published)));
  say("waiting", short(waiting.rows));
  const oldest = waiting.rows ? `oldest ${seconds(waiting.oldest)}` : "rows";
  say("oldest", waiting.rows > policy.most_waiting / 2 && policy.most_waiting ? `of ${short(policy.most_waiting)}` : oldest);
  say("lag", short(waiting.lag));
  const known = losses.map((each) => each.minute).filter((value) => value !== null);
  say("loss", known.length ? percent(known.reduce((sum, value) => sum + value, 0) / known.length) : "–");
}

function charts({ delays: waits, policy, rates: flow, losses, sizes }) {
  const width = (id) => Math.max(byId(id).clientWidth, 240);
  put("delays", delays(waits, policy.bound, width("delays")));
  put("rates", rates(flow, width("rates")));
  put("losses", bars(losses.map((each) => ({
    label: each.attribute, share: each.minute, text: percent(each.minute),
    trend: trend(each.trend, `${each.attribute}: ${percent(each.hour)} over the last hour`),
  }))));
  const total = sizes.counts.reduce((sum, count) => sum + count, 0), { edges, counts } = sizes;
  const label = (i) => {
    if (i === 0) return `below ${policy.k}`;
    const low = edges[i], high = (edges[i + 1] ?? Infinity) - 1;
    return high === Infinity ? `${low} or more` : low === high ? `${low}` : `${low} to ${high}`;
  };
  say("sizes-caption", `groups of the last minute by their records; k = ${policy.k} ${policy.counts}`);
  put("sizes", bars(counts.map((count, i) => ({
    label: label(i), share: total ? count / total : 0, text: short(count), tone: i === 0 ? "bad" : "",
  }))));
}

function withheld({ totals }) {
  const rows = [];
  for (const [code, count] of Object.entries(totals.rejected)) rows.push([`rejected: ${code}`, count]);
  for (const [reason, count] of Object.entries(totals.suppressed)) rows.push([`suppressed: ${reason}`, count]);
  for (const [reason, count] of Object.entries(totals.withdrawn)) rows.push([`groups withdrawn: ${reason}`, count]);
  rows.sort((one, two) => two[1] - one[1]);
  const nothing = html("p", { className: "none" }, "Nothing: every record was published or waits.");
  const most = Math.max(totals.consumed, 1);
  put("withheld", rows.length ? bars(rows.map(([label, count]) => ({ label, share: count / most, text: short(count) }))) : nothing);
}

function partitions({ partitions: each, workers }) {
  byId("partitions-card").hidden = !each.length;
  const order = ["quarantined", "restoring", "paused", "reading"];
  const sorted = [...each].sort((one, two) => order.indexOf(one.state) - order.indexOf(two.state) || one.partition - two.partition);
  const counts = order.map((word) => [word, each.filter((one) => one.state === word).length]).filter(([, count]) => count);
  say("partitions-caption", counts.map(([word, count]) => `${count} ${word}`).join(", "));
  const several = workers.length > 1, rows = [];
  for (const one of sorted.slice(0, MOST_ROWS)) {
    const words = one.code ? `${one.state} (${one.code})` : one.state;
    const mark = state(one.state);
    mark.textContent = words;
    rows.push([one.partition, mark, one.lag === null ? "–" : one.lag, ...(several ? [one.worker] : [])]);
    if (one.remedy) rows.push([html("td", { className: "remedy", colSpan: several ? 4 : 3 }, `→ ${one.remedy}`)]);
  }
  put("partitions", table(["partition", "state", "not read yet", ...(several ? ["worker"] : [])], rows));
}

function workers({ workers: each, restarts, totals }) {
  byId("workers-card").hidden = false;
  const running = each.filter((one) => !["gone", "ended"].includes(one.state)).length;
  const { committed = 0, aborted = 0, unknown = 0 } = totals.transactions;
  const transactions = committed + aborted + unknown ? `; ${short(committed)} transactions, ${short(aborted + unknown)} failed` : "";
  say("workers-caption", `${running} of ${each.length} running, ${restarts} restarted${transactions}`);
  put("workers", table(["worker", "state", "records/s", "waiting", "since"], each.map((one) =>
    [one.worker, state(one.state), one.rate, one.waiting, one.uptime ? seconds(one.uptime) : "–"])));
}

function policy({ policy: facts, version }) {
  const made = html("dl", { className: "facts" });
  const rows = [
    ["name", `${facts.name} @ ${facts.fingerprint}`], ["models", facts.models.join("; ")],
    ["bound", facts.bound === null ? "by records only" : seconds(facts.bound)], ["k counts", facts.counts],
    ["attributes", facts.attributes.join(", ")], ...(facts.group ? [["group", facts.group]] : []), ["version", version],
  ];
  for (const [name, text] of rows) made.append(html("dt", {}, name), html("dd", {}, text));
  put("policy", made);
  say("route", facts.group ? `${facts.name}: ${facts.source} → ${facts.target}` : facts.name);
}

function show(message) {
  status = JSON.parse(message);
  last = performance.now();
  line("live", "live");
  draw();
}

function draw() {
  if (!status) return;
  headline(status);
  if (document.hidden) return; // the title is seen all the same
  for (const part of [numbers, charts, withheld, partitions, workers, policy]) part(status);
}

function silent() {
  if (ended || performance.now() - last < SILENT) return;
  const since = last ? `no answer for ${seconds((performance.now() - last) / 1000)}` : "no answer yet";
  line("lost", since);
  if (last) hero("bad", "No answer", `The worker does not answer; below is what it told last.`, "is the process running? look at its log");
}

function follow() {
  const source = new EventSource("/api/events");
  source.onmessage = (event) => show(event.data);
  source.addEventListener("end", () => { ended = true; source.close(); line("wait", "ended"); });
  source.onerror = () => {
    if (ended || source.readyState !== EventSource.CLOSED) return; // else the browser asks again by itself
    ask();
    setTimeout(follow, AGAIN);
  };
}

async function ask() {
  try {
    const answer = await fetch("/api/status");
    if (answer.ok) show(await answer.text());
  } catch { /* silent() tells it */ }
}

setInterval(silent, 500);
addEventListener("resize", draw);
document.addEventListener("visibilitychange", draw);
follow();
