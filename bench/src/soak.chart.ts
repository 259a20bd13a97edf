import { type Results } from './results.js';
import { SoakFigures } from './soak.figures.js';
import { medianOf } from './table.js';

const MEBIBYTE = 2 ** 20;
const WIDTH = 800;
const LEFT = 76;
const RIGHT = 20;
const TOP = 84;
const PANEL = 130;
/** Between two panels: the title of the lower one stands there. */
const GAP = 50;
const BOTTOM = 60;
const RULES_PER_PANEL = 4;
const STEPS = [1, 2, 2.5, 5, 10];

interface Panel {
  readonly title: string;
  readonly color: string;
  /** The line: a value for each look. */
  readonly values: readonly number[];
  /** Around the line, the lowest and the highest value of each look. */
  readonly band?: readonly (readonly [low: number, high: number])[];
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** The memory over the day, as SVG on a ground of its own, so that it is readable on a light and on a dark page. */
export function soakChart(results: Results): string {
  const figures = new SoakFigures(results);
  const heaps = figures.instances('heap').map((each) => each.map((bytes) => bytes / MEBIBYTE));
  const panels: Panel[] = [
    {
      title: `Heap after a garbage collection, MiB: median and range of ${heaps[0]!.length} instances`,
      color: '#1d4ed8',
      values: heaps.map(medianOf),
      band: heaps.map((each) => [Math.min(...each), Math.max(...each)]),
    },
    {
      title: 'used_memory of Redis, MiB',
      color: '#b45309',
      values: figures.redis('memory').map((bytes) => bytes / MEBIBYTE),
    },
    { title: 'Live sessions, thousands', color: '#047857', values: figures.redis('sessions').map((n) => n / 1000) },
  ];
  const length = figures.count('schedule', 'minutes');
  const height = TOP + panels.length * PANEL + (panels.length - 1) * GAP + BOTTOM;
  const toX = (minute: number) => LEFT + (minute / length) * (WIDTH - LEFT - RIGHT);
  const xs = figures.times('looks').map(toX);
  const failovers = figures.times('failovers').map(toX);
  const floor = height - BOTTOM;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="A day in fast motion">`,
    `<style>text{font:15px system-ui,sans-serif;fill:#1f2937}.scale{font-size:14px;fill:#4b5563}</style>`,
    `<rect width="${WIDTH}" height="${height}" rx="8" fill="#ffffff"/>`,
    ...legend(),
    ...panels.flatMap((panel, i) => {
      const top = TOP + i * (PANEL + GAP);
      return [...failovers.map((x) => failoverLine(x, top)), ...panelOf(panel, xs, top)];
    }),
    ...figures.times('deploys').map((minute) => deployMark(toX(minute), floor)),
    ...hourScale(length / 60, toX, floor),
    '</svg>',
    '',
  ].join('\n');
}

function legend(): string[] {
  return [
    `<line x1="${LEFT}" y1="20" x2="${LEFT}" y2="38" stroke="#dc2626" stroke-width="2" stroke-dasharray="5 3"/>`,
    `<text x="${LEFT + 10}" y="34">failover: the primary was killed, and its replica promoted</text>`,
    `<path d="${triangle(LEFT + 450, 36)}" fill="#6b7280"/>`,
    `<text x="${LEFT + 462}" y="34">deploy of one instance</text>`,
  ];
}

function failoverLine(x: number, top: number): string {
  return `<line x1="${short(x)}" y1="${top}" x2="${short(x)}" y2="${top + PANEL}" stroke="#dc2626" stroke-width="2" stroke-dasharray="5 3"/>`;
}

function deployMark(x: number, floor: number): string {
  return `<path d="${triangle(x, floor)}" fill="#6b7280"/>`;
}

function triangle(x: number, floor: number): string {
  return `M${short(x - 5)} ${floor}h10l-5 -10z`;
}

function panelOf({ title, color, values, band = [] }: Panel, xs: readonly number[], top: number): string[] {
  const step = stepFor(Math.max(...values, ...band.map(([, high]) => high)) / RULES_PER_PANEL);
  const toY = (value: number) => top + PANEL * (1 - value / (step * RULES_PER_PANEL));
  const rules = Array.from({ length: RULES_PER_PANEL + 1 }, (_, i) => i * step);
  const line = pathOf(values.map((value, i) => ({ x: xs[i]!, y: toY(value) })));
  const upper = band.map(([, high], i) => ({ x: xs[i]!, y: toY(high) }));
  const lower = band.map(([low], i) => ({ x: xs[i]!, y: toY(low) }));
  return [
    `<text x="${LEFT}" y="${top - 14}">${title}</text>`,
    ...rules.flatMap((value) => [
      `<line x1="${LEFT}" y1="${short(toY(value))}" x2="${WIDTH - RIGHT}" y2="${short(toY(value))}" stroke="#d1d5db"/>`,
      `<text class="scale" x="${LEFT - 10}" y="${short(toY(value) + 5)}" text-anchor="end">${short(value)}</text>`,
    ]),
    ...(band.length > 0
      ? [`<path d="${pathOf([...upper, ...lower.toReversed()])}z" fill="${color}" opacity="0.25"/>`]
      : []),
    `<path d="${line}" fill="none" stroke="${color}" stroke-width="2"/>`,
  ];
}

function hourScale(hours: number, toX: (minute: number) => number, floor: number): string[] {
  const every = hours > 6 ? 3 : 0.5;
  const labels = Array.from({ length: Math.floor(hours / every) + 1 }, (_, i) => i * every);
  return [
    ...labels.map((hour) => {
      return `<text class="scale" x="${short(toX(hour * 60))}" y="${floor + 22}" text-anchor="middle">${hour}</text>`;
    }),
    `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${floor + 46}" text-anchor="middle">hours by the clock of Redis</text>`,
  ];
}

function pathOf(points: readonly Point[]): string {
  return points.map(({ x, y }, i) => `${i === 0 ? 'M' : 'L'}${short(x)} ${short(y)}`).join('');
}

/** The next round number. */
function stepFor(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * STEPS.find((each) => each * power >= least)!;
}

function short(value: number): string {
  return `${Math.round(value * 10) / 10}`;
}
