/** A number of things, such as `1 session` and `2 sessions`. `things`: the plural. */
export function counted(count: number, thing: string, things = `${thing}s`): string {
  return `${count} ${count === 1 ? thing : things}`;
}

/** Numbers stand at the right. `nothing`: what to say where there are no rows. */
export function* columns(
  titles: readonly string[],
  rows: readonly (readonly (string | number)[])[],
  nothing?: string,
): Iterable<string> {
  if (rows.length === 0 && nothing !== undefined) return yield nothing;
  const all = [titles, ...rows.map((row) => row.map(String))];
  const widths = titles.map((_, i) => all.reduce((width, row) => Math.max(width, row[i]!.length), 0));
  const isNumber = titles.map((_, i) => rows.length > 0 && rows.every((row) => typeof row[i] === 'number'));
  for (const row of all) {
    const cells = row.map((cell, i) => (isNumber[i] ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)));
    yield cells.join('  ').trimEnd();
  }
}

/** A time in epoch milliseconds, in UTC. A text of somebody else may be no time. */
export function shownTime(at: number | undefined): string {
  const date = new Date(at ?? NaN);
  return Number.isNaN(date.getTime()) ? '-' : date.toISOString().replace('.000Z', 'Z');
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

/** A duration in its largest unit, such as `5m`, rounded down. */
export function shownDuration(ms: number | undefined): string {
  if (ms === undefined) return '-';
  const [unit, size] = UNITS.find(([, length]) => ms >= length) ?? ['ms', 1];
  return `${Math.floor(Math.max(0, ms) / size)}${unit}`;
}

export function shownBytes(bytes: number): string {
  if (bytes < 1024) return `${Math.round(bytes)} B`;
  const [unit, size] = bytes < 2 ** 20 ? ['KiB', 2 ** 10] : bytes < 2 ** 30 ? ['MiB', 2 ** 20] : ['GiB', 2 ** 30];
  return `${(bytes / Number(size)).toFixed(1)} ${unit}`;
}
