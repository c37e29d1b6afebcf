// All seeds at once: the same question over every run of a configuration, with intervals.

import { ask } from "./api.js";
import { h, number } from "./dom.js";
import { store } from "./state.js";

/** Whether all seeds are drawn: it was asked for, and there are several. */
export const isPooled = (context) => Boolean(store.state.seeds) && context.seeds.length > 1;

/** The answer over all seeds, {seeds, mean, low, high}, or null where one run is looked at. */
export async function askSeeds(context, name, question, view) {
  if (!isPooled(context)) return null;
  return ask("over", { name, question, things: context.seeds.map((one) => one.name) }, view && `${view} seeds`);
}

/** What a picture is a picture of. */
export function sample(context) {
  const count = context.seeds.length;
  if (isPooled(context)) return `mean of ${count} seeds, 95 % intervals`;
  return count > 1 ? `one run of ${count} seeds` : context.thing?.kind === "recording" ? "one recording" : context.thing?.kind === "model" ? "one model" : "one run";
}

/** Says so beside a picture. */
export const mark = (context, more = "") => h("span.sample", { title: "Pictures of one run are pictures of one run." }, sample(context), more);

/** `0.3 to 0.5`, or nothing. */
export const interval = (low, high, show = number) => (low === null || low === undefined || high === null || high === undefined ? "" : `${show(low)} to ${show(high)}`);

/** The ends of an array's interval: {low, high} of the same shape, or null. */
export function endsOf(arrays, name) {
  const [low, high] = [arrays[`${name} low`], arrays[`${name} high`]];
  return low && high ? { low, high } : null;
}
