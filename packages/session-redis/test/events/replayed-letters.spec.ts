import { LeakGuard } from '@nest-session/test-infrastructure';
import { EventStreamScripts } from '../../../redis-events/src/scripts/event-stream.scripts.js';
import { SESSION_ENTRIES } from '../support/event-scripts.js';
import { exactDump } from '../support/exact.dump.js';
import { HandlingGroup } from '../support/handled-events.js';
import { DEAD_LETTERS, MINUTE, type SteppableStore, Store } from '../support/store.fixture.js';

LeakGuard.install();

const LARGE = 'x'.repeat(DEAD_LETTERS.maxDataSize);
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

/** Sessions that end, whose data a dead letter copies. */
const ENDED = {
  'with data': { attributes: { cart: '"apple"' }, fields: {} },
  'with data that is too large': { attributes: { cart: LARGE }, fields: {} },
  'without data': { attributes: undefined, fields: {} },
  'with what it brings itself': { attributes: undefined, fields: { data: '{"a":"1"}', who: '{}', traceparent: TRACE } },
};

let store: SteppableStore;
let group: HandlingGroup;
let scripts: EventStreamScripts;
beforeAll(async () => {
  store = await Store.openSteppable();
  scripts = new EventStreamScripts(store.client, SESSION_ENTRIES);
});
beforeEach(async () => {
  await store.client.flushall();
  group = await HandlingGroup.create(store);
});
afterAll(() => store.close());

/** An event, which the group reads. */
async function readEnd({ attributes, fields }: (typeof ENDED)[keyof typeof ENDED]) {
  const id = attributes ? await store.create(attributes) : store.id();
  if (attributes) await store.client.hset(store.keys.session(id), 'ended', 'deleted');
  const all = { type: 'deleted', session: id, at: '1', ...fields };
  await store.client.del(store.keys.events);
  await store.client.xgroup('CREATE', store.keys.events, 'default', '0', 'MKSTREAM');
  await store.client.xadd(store.keys.events, '*', ...Object.entries(all).flat());
  return group.read(store.keys);
}

/** Makes the event that the group has read a dead letter. */
async function bury(entry: Awaited<ReturnType<typeof readEnd>>): Promise<string> {
  expect(await group.fail(entry, { done: ['Reminders.log'] })).toBe('dead');
  await store.client.xdel(store.keys.events, entry.position);
  const [[position]] = (await store.client.xrevrange(store.keys.deadLetters, '+', '-', 'COUNT', 1)) as [
    [string, unknown],
  ];
  return position;
}

/** The fields of the only dead letter but the position of its event, and what is recorded of it. */
async function letter() {
  const [[position, fields]] = (await store.client.xrange(store.keys.deadLetters, '-', '+')) as [[string, string[]]];
  const at = fields.indexOf('entry');
  const dump = await exactDump(store.client);
  const records = [store.keys.deadLetterIndex, `${store.keys.deadLetters}:sizes`].map((key) => dump[key]);
  const [ms, sequence] = position.split('-');
  const text = JSON.stringify(records).replace(`${ms}-${sequence!.padStart(6, '0')}`, '<position>');
  return { fields: fields.toSpliced(at, 2), records: text };
}

describe.each(Object.entries(ENDED))('the dead letter of a session %s', (_, ended) => {
  it('is the same one after it was replayed, and has failed again', async () => {
    const position = await bury(await readEnd(ended));
    const before = await letter();
    expect(await scripts.replayDeadLetter(store.keys, position)).toBe('replayed');
    await bury(await group.read(store.keys));
    expect(await letter()).toEqual(before);
  });

  it('has its event as it was when it is replayed, for its group and the handlers that are left', async () => {
    const entry = await readEnd(ended);
    const position = await bury(entry);
    const { fields } = await letter();
    const data = fields.indexOf('data');
    expect(await scripts.replayDeadLetter(store.keys, position)).toBe('replayed');
    const { fields: replayed } = await group.read(store.keys);
    const added = entry.fields.includes('data') || data < 0 ? [] : fields.slice(data, data + 2);
    expect(replayed).toEqual(['group', 'default', 'done', '["Reminders.log"]', ...entry.fields, ...added]);
  });

  it.each(['replay', 'discard'] as const)('leaves nothing after a %s', async (way) => {
    const entry = await readEnd(ended);
    const before = await exactDump(store.client);
    const position = await bury(entry);
    if (way === 'discard') expect(await scripts.discardDeadLetter(store.keys, position)).toBe('discarded');
    else expect(await scripts.replayDeadLetter(store.keys, position)).toBe('replayed');
    const after = await exactDump(store.client);
    const besides = ({ [store.keys.events]: _events, ...rest }: Record<string, unknown>) => rest;
    expect(besides(after)).toEqual(besides(before));
  });
});

it('a dead letter that was buried while the clock was behind has another time when it has failed again', async () => {
  await bury(await readEnd(ENDED['with data']));
  const [[, usual]] = (await store.client.xrange(store.keys.deadLetters, '-', '+')) as [[string, string[]]];
  expect(usual).not.toContain('buried');
  await store.server.stepClock(-60 * MINUTE);
  const position = await bury(await readEnd(ENDED['with data']));
  await store.server.stepClock(120 * MINUTE);
  expect(await scripts.replayDeadLetter(store.keys, position)).toBe('replayed');
  const again = await bury(await group.read(store.keys));
  const [[, fields]] = (await store.client.xrange(store.keys.deadLetters, again, again)) as [[string, string[]]];
  expect(fields.filter((_, i) => i % 2 === 0)).toEqual(usual.filter((_, i) => i % 2 === 0));
});
