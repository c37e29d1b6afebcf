// Which attention is looked at, and the words at its sides.

/** The words at the sides of a site, given what was said. */
export function sidesOf(site, answer, feed) {
  const pass = feed === "target" && answer.forced ? answer.forced : answer.free;
  const of = { encoder: answer.source, decoder: site.key_side === "decoder" ? pass.fed : pass.steps };
  return { rows: site.query_side === "encoder" ? answer.source : site.key_side === "decoder" ? pass.fed : of.decoder, columns: of[site.key_side] };
}

/** The site and head that are looked at: as chosen, or the last that crosses. */
export function chooseSite(answer, state) {
  const { sites } = answer;
  const site = sites.find((one) => one.name === state.site) || [...sites].reverse().find((one) => one.crosses) || sites[0];
  return site ? { site, head: Math.min(state.head, site.heads - 1) } : { site: null, head: 0 };
}
