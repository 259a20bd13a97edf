import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { END_REASONS } from '../../packages/session-opentelemetry/src/events/event-counters.js';
import {
  COUNTERS,
  GAUGES,
  HISTOGRAMS,
  type Instrument,
  OBSERVED_COUNTERS,
  STATES,
} from '../../packages/session-opentelemetry/src/metrics/instrument-table.js';
import { ROOT } from './support/compiler.js';

const KINDS: readonly (readonly [kind: string, table: Readonly<Record<string, Instrument>>])[] = [
  ['histogram', HISTOGRAMS],
  ['counter', COUNTERS],
  ['gauge', GAUGES],
  ['counter', OBSERVED_COUNTERS],
  ['up-down counter', STATES],
];

it('docs/opentelemetry.md has all instruments, with their kinds, units and attributes', async () => {
  const text = await readFile(join(ROOT, 'docs/opentelemetry.md'), 'utf8');
  const told = [...text.matchAll(/^\| `(\w+(?:\.\w+)+)` +\| (.+) \|$/gm)].map(([, name, row]) => {
    const [kind, unit, attributes] = row!.split(' | ').map((cell) => cell.trim().replaceAll('`', ''));
    return { name, kind, unit, attributes: attributes === '-' ? [] : attributes?.split(', ') };
  });
  const instruments = KINDS.flatMap(([kind, table]) =>
    Object.values(table).map(({ name, unit, attributes }) => ({ name, kind, unit, attributes })),
  );
  const byName = <T extends { name?: string | undefined }>(all: T[]) =>
    all.toSorted((a, b) => a.name!.localeCompare(b.name!));
  expect(instruments.length).toBeGreaterThan(20);
  expect(byName(told)).toEqual(byName(instruments));
});

it('docs/events.md and docs/opentelemetry.md have all reasons of a deletion', async () => {
  const [events, metrics] = await Promise.all(
    ['events', 'opentelemetry'].map((page) => readFile(join(ROOT, `docs/${page}.md`), 'utf8')),
  );
  const [, table = ''] = /^\| `reason` .*\n((?:\|.*\n)+)/m.exec(events!) ?? [];
  const told = [...table.matchAll(/^\| `'([\w-]+)'`/gm)].map(([, reason]) => reason!);
  expect(told.toSorted()).toEqual(Object.keys(END_REASONS).toSorted());
  const [, list = ''] = /^- `nest_session\.end\.reason`: ([^.]+)\./m.exec(metrics!) ?? [];
  const values = [...list.matchAll(/`(\w+)`/g)].map(([, value]) => value!);
  expect(values.toSorted()).toEqual(['idle', 'absolute', ...Object.values(END_REASONS)].toSorted());
});
