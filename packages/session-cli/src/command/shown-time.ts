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

/** Bytes in a unit that is easy to read. */
export function shownBytes(bytes: number): string {
  if (bytes < 1024) return `${Math.round(bytes)} B`;
  const [unit, size] = bytes < 2 ** 20 ? ['KiB', 2 ** 10] : bytes < 2 ** 30 ? ['MiB', 2 ** 20] : ['GiB', 2 ** 30];
  return `${(bytes / Number(size)).toFixed(1)} ${unit}`;
}
