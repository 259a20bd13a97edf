import { type Comparison } from './results.js';
import { quantile, ratioOf } from './rounds.js';

/** A table of Markdown that Prettier leaves as it is: the first column is text, the others are figures. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((name, column) => Math.max(3, name.length, ...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join(' | ')} |`;
  const rule = `| ${widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}

/** The rounds of a figure of a contender; none when the contender was not there. */
export function roundsOf({ contenders }: Comparison, name: string, figure: string): readonly number[] {
  return contenders.find((each) => each.name === name)?.figures[figure] ?? [];
}

export function medianOf(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** `1.23 (1.20-1.31)`: the ratio in the same round, its median and the middle half of the rounds. */
export function ratio(values: readonly number[], beside: readonly number[]): string {
  const { median, spread } = ratioOf(values, beside);
  return `${median.toFixed(2)} (${spread.map((each) => each.toFixed(2)).join('-')})`;
}

/** As many digits as a figure deserves. */
export function number(value: number): string {
  if (value >= 1000) return `${Math.round(value / 10) * 10}`.replace(/\B(?=(\d{3})+$)/g, ',');
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
