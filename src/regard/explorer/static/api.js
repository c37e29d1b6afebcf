// Questions to the server. Answers are JSON, or arrays with a JSON header (see packing.py).

const token = new URLSearchParams(location.search).get("token") || "";
const page = crypto.randomUUID ? crypto.randomUUID() : String(Math.random());
const kept = new Map();
const MOST = 200;
const KINDS = { float32: Float32Array, uint8: Uint8Array, int32: Int32Array };

export class Refused extends Error {
  constructor(status, sentences) {
    super(sentences.join(" "));
    this.status = status;
  }
}

/** Asks; the newest question of a view counts, and the same question is asked once. */
export function ask(name, question = {}, view = "", fresh = false) {
  const key = `${name} ${JSON.stringify(question)}`;
  if (!fresh && kept.has(key)) {
    const found = kept.get(key);
    kept.delete(key);
    kept.set(key, found);
    return found;
  }
  const answer = send(name, question, view);
  kept.set(key, answer);
  if (kept.size > MOST) kept.delete(kept.keys().next().value);
  answer.catch(() => kept.delete(key));
  return answer;
}

async function send(name, question, view) {
  let response;
  try {
    response = await fetch(`/api/${name}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-regard-token": token,
        "x-regard-view": view ? `${page} ${view}` : "",
      },
      body: JSON.stringify(question),
    });
  } catch {
    throw new Refused(0, ["The server does not answer. Is `regard explore` still running?"]);
  }
  if (!response.ok) {
    const data = await response.json().catch(() => ({ error: [response.statusText] }));
    throw new Refused(response.status, data.error);
  }
  if (response.status === 204) throw new Refused(409, ["A newer question came."]);
  const kind = response.headers.get("content-type") || "";
  if (kind.includes("json")) return response.json();
  if (kind.includes("octet-stream")) return unpack(await response.arrayBuffer());
  return response.blob();
}

/** {about, arrays: name -> {shape, data}} */
export function unpack(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const arrays = {};
  for (const [name, entry] of Object.entries(header.arrays)) {
    const count = entry.shape.reduce((a, b) => a * b, 1);
    arrays[name] = { shape: entry.shape, data: new KINDS[entry.kind](buffer, 4 + size + entry.offset, count) };
  }
  return { about: header.about, arrays };
}

/** Whether an error is only that somebody asked again. */
export const isStale = (error) => error instanceof Refused && error.status === 409;

/** Hands a file to the person. */
export function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
