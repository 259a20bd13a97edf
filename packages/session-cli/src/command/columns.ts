/** Rows of text under their titles, each column as wide as its longest cell. Numbers stand at the right. */
export function* columns(titles: readonly string[], rows: readonly (readonly (string | number)[])[]): Iterable<string> {
  const all = [titles, ...rows.map((row) => row.map(String))];
  const widths = titles.map((_, i) => all.reduce((width, row) => Math.max(width, row[i]!.length), 0));
  const isNumber = titles.map((_, i) => rows.length > 0 && rows.every((row) => typeof row[i] === 'number'));
  for (const row of all) {
    const cells = row.map((cell, i) => (isNumber[i] ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)));
    yield cells.join('  ').trimEnd();
  }
}
