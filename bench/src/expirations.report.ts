import { type Results } from './results.js';
import { number, roundsOf, table } from './table.js';

// Microseconds of Redis in a second.
const NOISE = 500;
const FIGURES = ['p50', 'p99', 'max', 'perEnd', 'atRest', 'bytes'];

/** How late each way notices that sessions have expired, and what it costs. */
export function expirationsReport({ comparisons }: Results): string {
  const rows = comparisons.flatMap((comparison) =>
    comparison.contenders.map(({ name }) => [
      name,
      `${Math.round(100 * roundsOf(comparison, name, 'noticed')[0]!)} %`,
      ...FIGURES.map((figure) => {
        const [value] = roundsOf(comparison, name, figure);
        if (value === undefined) return '-';
        if (figure === 'atRest' && value < NOISE) return `< ${NOISE}`;
        return value < 1 ? value.toFixed(3) : number(value);
      }),
    ]),
  );
  const head = ['s late, median', 'p99', 'longest', 'Redis µs per end', 'Redis µs per s at rest', 'bytes per session'];
  return table(['way', 'noticed', ...head], rows);
}

const [WIDTH, LABELS, ROW] = [900, 330, 20];
// Seconds: the ends of the scale, which is logarithmic.
const [SHORTEST, LONGEST] = [0.01, 1000];

/** How late each way is, as an SVG. */
export function expirationsChart({ comparisons }: Results): string {
  const parts = [
    `<text x="10" y="28" font-weight="bold">Seconds from the end of a session to its record (logarithmic): median and 99th percentile</text>`,
  ];
  let y = 44;
  for (const comparison of comparisons) {
    for (const { name } of comparison.contenders) {
      for (const [figure, colour] of [
        ['p50', '#c2410c'],
        ['p99', '#94a3b8'],
      ] as const) {
        const value = roundsOf(comparison, name, figure)[0]!;
        const share = Math.log(Math.max(value, SHORTEST) / SHORTEST) / Math.log(LONGEST / SHORTEST);
        const length = Math.round(share * (WIDTH - LABELS - 80));
        if (figure === 'p50') {
          const noticed = Math.round(100 * roundsOf(comparison, name, 'noticed')[0]!);
          const label = noticed < 100 ? `${name}: ${noticed} % noticed` : name;
          parts.push(`<text x="${LABELS - 10}" y="${y + 12}" text-anchor="end">${label}</text>`);
        }
        parts.push(
          `<rect x="${LABELS}" y="${y}" width="${length}" height="${ROW - 5}" fill="${colour}"/>`,
          `<text x="${LABELS + length + 8}" y="${y + 12}">${value < 1 ? value.toFixed(3) : number(value)} s</text>`,
        );
        y += ROW;
      }
      y += 6;
    }
  }
  const size = `width="${WIDTH}" height="${y}" viewBox="0 0 ${WIDTH} ${y}"`;
  const style = 'font-family="system-ui, sans-serif" font-size="13" fill="#1e293b"';
  const background = '<rect width="100%" height="100%" fill="#ffffff"/>';
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${style}>\n${[background, ...parts].join('\n')}\n</svg>\n`;
}
