const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** A span of time: a number and its unit (`'500ms'`, `'30s'`, `'30m'`, `'8h'`, `'30d'`), or 0. */
export type Duration = string | 0;

/**
 * Returns milliseconds, or the problem as the end of a sentence. Refuses a bare number, because its unit is unclear.
 */
export function parseDuration(value: unknown): number | string {
  if (value === 0 || value === '0') return 0;
  if (typeof value === 'number' && value > 0 && value < Infinity) return bare(`${value}`, `${value}`);
  // Environment variables hold numbers as strings.
  if (typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value.trim()))
    return bare(JSON.stringify(value), value.trim());
  const match = typeof value === 'string' ? DURATION.exec(value.trim()) : null;
  if (!match) {
    // An unset environment variable becomes NaN.
    const given = typeof value === 'number' ? `is ${value}, which is` : 'is';
    return `${given} not a duration: write a number and its unit, such as '30m' (units: ${Object.keys(UNITS).join(', ')})`;
  }
  return Number(match[1]) * UNITS[match[2]!]!;
}

function bare(given: string, amount: string): string {
  return `is the bare number ${given}: name its unit, such as '${amount}s' or '${amount}ms'`;
}

/** A duration in the largest unit that needs no fraction. */
export function durationText(ms: number): string {
  const [unit, its] = Object.entries(UNITS).findLast(([, each]) => ms >= each && ms % each === 0) ?? ['ms', 1];
  return `${ms / its}${unit}`;
}
