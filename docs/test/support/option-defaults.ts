import { OptionReader } from '@nest-session/core/internal';
import { durationText } from '../../../packages/session-core/src/option-reading/duration.js';

/** The defaults of options by their names, such as `cookie.path`, as the page prints them. */
export type OptionDefaults = ReadonlyMap<string, string>;

const FALLBACK_INDEX = { duration: 1, integer: 1, boolean: 1, text: 1, oneOf: 2 } as const;

/**
 * The defaults of a module: what `resolve` tells the reader to read where an option is not set, and `others`, which it
 * fills in itself; undefined: none after all.
 */
export function defaultsOf(resolve: () => unknown, others: Readonly<Record<string, unknown>> = {}): OptionDefaults {
  const found = new Map<string, string>();
  const reader = OptionReader.prototype as unknown as Record<string, (this: any, ...args: any[]) => unknown>;
  const methods = Object.entries(FALLBACK_INDEX).map(([method, index]) => {
    const read = reader[method]!;
    reader[method] = function (...args) {
      const name = this.path === '' ? args[0] : `${this.path}.${args[0]}`;
      if (args[index] !== undefined) found.set(name, shown(args[index], method));
      return Reflect.apply(read, this, args);
    };
    return { method, read };
  });
  try {
    resolve();
  } finally {
    for (const { method, read } of methods) reader[method] = read;
  }
  for (const [name, value] of Object.entries(others)) {
    if (value === undefined) found.delete(name);
    else found.set(name, shown(value));
  }
  return found;
}

function shown(value: unknown, method = ''): string {
  const text = String(value);
  const isMilliseconds = method === 'duration' && text.endsWith('ms');
  if (typeof value !== 'string') return `\`${text}\``;
  return `\`'${isMilliseconds ? durationText(Number.parseInt(text, 10)) : text}'\``;
}

/** A page with these defaults in the second column of the tables between the markers of each module. */
export function withDefaults(page: string, modules: Readonly<Record<string, OptionDefaults>>): string {
  return page.replaceAll(
    /(<!-- defaults: (\w+) -->\n\n)([^]*?)(\n\n<!-- \/defaults -->)/g,
    (_all, begin: string, module: string, table: string, end: string) =>
      begin + printed(table, modules[module] ?? new Map()) + end,
  );
}

/** Words that explain a default stay. */
function printed(table: string, defaults: OptionDefaults): string {
  const rows = table.split('\n').map((row) => /^\| (.+?) +\| (.+?) +\| (.*)$/.exec(row) ?? [row, '', '', '']);
  const cells = rows.map(([, option = '', cell = '']) => {
    const isPrinted = cell === '-' || /^`[^`]+`$/.test(cell);
    return isPrinted ? (defaults.get(option.replaceAll('`', '')) ?? '-') : cell;
  });
  const width = Math.max(...cells.filter((cell) => !/^-{2,}$/.test(cell)).map(({ length }) => length));
  const first = Math.max(...rows.map(([, option = '']) => (/^-{2,}$/.test(option) ? 0 : option.length)));
  return rows
    .map(([, option = '', , rest = ''], index) => {
      const cell = /^-{2,}$/.test(cells[index]!) ? '-'.repeat(width) : cells[index]!.padEnd(width);
      return `| ${option.padEnd(first)} | ${cell} | ${rest}`;
    })
    .join('\n');
}
