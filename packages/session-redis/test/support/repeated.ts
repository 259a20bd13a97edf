/**
 * The run to repeat, from the environment variable `REPEAT`: `<seed>`, or `<seed>/<path>` for one example of that run,
 * as the message of a failure has it. Empty when there is none.
 */
export function repeated(): { seed?: number; path?: string } {
  const [, seed, path] = /^(-?\d+)(?:\/([\d:]+))?$/.exec(process.env['REPEAT'] ?? '') ?? [];
  if (seed === undefined) return {};
  return path === undefined ? { seed: Number(seed) } : { seed: Number(seed), path };
}
