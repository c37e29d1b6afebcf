// The whole state, which is what the address holds after its #. Views read it and ask to change it.

export const DEFAULTS = {
  view: "attention", thing: "", checkpoint: "reported", source: "", target: "", sample: null,
  feed: "own", forced: {}, changes: [], site: "", head: 0, cell: null, locked: false,
  pins: [], side: "encoder", step: 0, scale: "weights", other: "", instrument: "breakdown",
  probe: "none", space: "paths", seeds: false, merge: "no", finder: "sentences",
};
const LIVE = ["thing", "checkpoint", "source", "target", "sample", "feed", "forced", "changes"];

class Store {
  constructor() {
    this.listeners = new Set();
    this.state = { ...DEFAULTS };
    this.read();
    addEventListener("hashchange", () => {
      if (location.hash.slice(1) !== this.written) {
        this.read();
        this.tell(Object.keys(DEFAULTS));
      }
    });
  }

  /** From the address; whatever does not fit there is passed over. */
  read() {
    const found = new URLSearchParams(location.hash.slice(1));
    const state = { ...DEFAULTS };
    for (const [name, fallback] of Object.entries(DEFAULTS)) {
      if (!found.has(name)) continue;
      const text = found.get(name);
      if (typeof fallback === "string") state[name] = text;
      else try { state[name] = JSON.parse(text); } catch { /* not ours */ }
    }
    this.state = state;
    this.written = location.hash.slice(1);
  }

  write() {
    const found = new URLSearchParams();
    for (const [name, fallback] of Object.entries(DEFAULTS)) {
      const value = this.state[name];
      if (JSON.stringify(value) === JSON.stringify(fallback)) continue;
      found.set(name, typeof fallback === "string" ? value : JSON.stringify(value));
    }
    this.written = found.toString();
    history.replaceState(null, "", `${location.pathname}${location.search}#${this.written}`);
  }

  /** Changes some of it, and tells everybody what. */
  set(patch) {
    const changed = Object.keys(patch).filter((name) => JSON.stringify(patch[name]) !== JSON.stringify(this.state[name]));
    if (!changed.length) return;
    Object.assign(this.state, patch);
    this.write();
    this.tell(changed);
  }

  tell(changed) {
    for (const listener of this.listeners) listener(this.state, changed);
  }

  listen(call) {
    this.listeners.add(call);
  }
}

export const store = new Store();

/** The question that the present sentence is; `patch` for another one beside it. */
export function question(patch = {}) {
  const state = { ...store.state, ...patch };
  const found = { thing: state.thing, checkpoint: state.checkpoint, source: state.source, feed: state.feed };
  if (/^\d+$/.test(String(found.checkpoint))) found.checkpoint = Number(found.checkpoint);
  if (state.target) found.target = state.target;
  if (state.sample !== null) found.sample = state.sample;
  if (state.feed === "own" && Object.keys(state.forced).length) found.forced = state.forced;
  if (!found.target) found.feed = "own";
  if (state.changes.length) found.changes = state.changes;
  return found;
}

/** Whether a change of state means another sentence, model or setting of them. */
export const asksAnew = (changed) => changed.some((name) => LIVE.includes(name));

/** The changes with one of a kind put in the place of those that `same` picks. */
export function withChange(change, same) {
  const others = store.state.changes.filter((one) => !same(one));
  return change ? [...others, change] : others;
}
