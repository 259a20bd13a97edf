import { ON_EXPRESS, ON_FASTIFY, OURS } from './http.scenarios.js';
import { type Results } from './results.js';
import { medianOf, number, roundsOf } from './table.js';

const SHOWN = ['read 1 x 100 B', 'write 1 x 100 B', 'read one of 50 x 100 B', 'read 1 x 5 KB'];

const LABELS = 330;
const WIDTH = 900;
const ROW = 20;
const HEAD = 34;

/** Requests per second of all contenders, as an SVG. */
export function chart({ comparisons }: Results): string {
  const ours = Object.values<string>(OURS);
  const parts: string[] = [];
  let y = 10;
  for (const title of SHOWN) {
    const comparison = comparisons.find((each) => each.title === title);
    if (!comparison) continue;
    const bars = [...ON_EXPRESS, ...ON_FASTIFY]
      .map((name) => ({ name, values: roundsOf(comparison, name, 'perSecond') }))
      .filter(({ values }) => values.length > 0)
      .map(({ name, values }) => ({ name, value: medianOf(values) }));
    const most = Math.max(...bars.map(({ value }) => value));
    parts.push(`<text x="10" y="${y + 18}" font-weight="bold">${title}: requests per second</text>`);
    y += HEAD;
    for (const { name, value } of bars) {
      const length = Math.round((value / most) * (WIDTH - LABELS - 80));
      const colour = ours.includes(name) ? '#c2410c' : '#94a3b8';
      parts.push(
        `<text x="${LABELS - 10}" y="${y + 12}" text-anchor="end">${name}</text>`,
        `<rect x="${LABELS}" y="${y}" width="${length}" height="${ROW - 5}" fill="${colour}"/>`,
        `<text x="${LABELS + length + 8}" y="${y + 12}">${number(value)}</text>`,
      );
      y += ROW;
    }
    y += 10;
  }
  const size = `width="${WIDTH}" height="${y}" viewBox="0 0 ${WIDTH} ${y}"`;
  const style = 'font-family="system-ui, sans-serif" font-size="13" fill="#1e293b"';
  const background = '<rect width="100%" height="100%" fill="#ffffff"/>';
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${style}>\n${[background, ...parts].join('\n')}\n</svg>\n`;
}
