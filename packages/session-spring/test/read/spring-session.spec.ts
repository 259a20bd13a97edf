import { isAlive, readSpringSession } from '../../src/read/spring-session.js';
import { RECORDED_KEYS, type RecordedKeys, stored } from '../support/spring.records.js';

function fieldsOf({ keys }: RecordedKeys, id: string): [string, Buffer][] | undefined {
  const key = keys[`sessions:${id}`];
  return key?.[0] === 'hash' ? Object.entries(key[2]).map(([name, text]) => [name, stored(text)]) : undefined;
}

const sessionOf = (snapshot: RecordedKeys, id: string) => readSpringSession(fieldsOf(snapshot, id) ?? []);

const idsIn = ({ keys }: RecordedKeys) =>
  Object.keys(keys).flatMap((key) => (/^sessions:[^:]+$/.test(key) && keys[key]![0] === 'hash' ? [key.slice(9)] : []));

/** The last keys of a scenario. */
const after = (from: string, scenario: string, step = '') =>
  RECORDED_KEYS.findLast((each) => each.from === from && each.scenario === scenario && each.step.includes(step))!;

const FORMS = ['one-jdk', 'one-json-plain', 'one-json-typed'];

it('the records have sessions of each serializer', () => {
  const counts = new Map<string, number>();
  for (const each of RECORDED_KEYS) counts.set(each.from, (counts.get(each.from) ?? 0) + idsIn(each).length);
  for (const form of [...FORMS, 'interop-secmods']) expect([form, counts.get(form)! > 5]).toEqual([form, true]);
});

it.each(
  RECORDED_KEYS.filter(({ says }) => says).map((each) => [`${each.from} ${each.scenario} ${each.step}`, each] as const),
)('reads the session as Java had it: %s', (_name, snapshot) => {
  const { id, attributes, ...times } = snapshot.says!;
  const session = sessionOf(snapshot, id)!;
  expect(session).toMatchObject(times);
  const texts = Object.entries(attributes).map(([name, [, text]]) => [name, text] as const);
  expect(new Map([...session.attributes].map(([name, value]) => [name, `${value as string}`]))).toEqual(new Map(texts));
});

it('a session that Java loads is alive until then', () => {
  let loads = 0;
  for (const [i, { says, ...snapshot }] of RECORDED_KEYS.entries()) {
    const before = RECORDED_KEYS[i - 1];
    if (!says || before?.scenario !== snapshot.scenario || before.from !== snapshot.from) continue;
    const session = sessionOf(before, says.id);
    if (!session) continue;
    loads++;
    expect([snapshot.scenario, isAlive(session, says.lastAccessedTime)]).toEqual([snapshot.scenario, true]);
  }
  expect(loads).toBeGreaterThan(100);
});

describe.each(FORMS)('%s', (form) => {
  it.each(['07-invalidate', '11-interval-zero'])('a session that has ended is not alive: %s', (scenario) => {
    const all = RECORDED_KEYS.filter((each) => each.from === form && each.scenario === scenario);
    const sessions = all.flatMap((snapshot) => idsIn(snapshot).map((id) => sessionOf(snapshot, id)!));
    const ended = sessions.filter(({ maxInactiveInterval }) => maxInactiveInterval === 0);
    expect(ended.length).toBeGreaterThan(0);
    for (const session of ended) expect(isAlive(session, session.lastAccessedTime)).toBe(false);
  });

  it('a session is alive until the end of its interval, not at it', () => {
    const snapshot = after(form, '01-create-one-attribute');
    const session = sessionOf(snapshot, idsIn(snapshot)[0]!)!;
    const end = session.lastAccessedTime + 1_800_000;
    expect([isAlive(session, end - 1), isAlive(session, end)]).toEqual([true, false]);
  });

  it('a session with a negative interval is always alive', () => {
    const snapshot = after(form, '12-interval-negative');
    const session = sessionOf(snapshot, idsIn(snapshot)[0]!)!;
    expect(session.maxInactiveInterval).toBe(-1);
    expect(isAlive(session, Number.MAX_SAFE_INTEGER)).toBe(true);
  });

  it('what a late request has written of a session that was gone is no session', () => {
    const snapshot = after(form, '24-slow-request-vs-vanished');
    const incomplete = idsIn(snapshot).filter(
      (id) => !fieldsOf(snapshot, id)!.some(([name]) => name === 'creationTime'),
    );
    expect(incomplete.length).toBeGreaterThan(0);
    for (const id of incomplete) expect(sessionOf(snapshot, id)).toBeUndefined();
  });

  it('a removed attribute is not there', () => {
    const snapshot = after(form, '04-remove-attribute');
    const [id] = idsIn(snapshot);
    const empty = fieldsOf(snapshot, id!)!.filter(([, value]) => value.length === 0);
    expect(empty.length).toBeGreaterThan(0);
    const { attributes } = sessionOf(snapshot, id!)!;
    for (const [name] of empty) expect(attributes.has(name.slice('sessionAttr:'.length))).toBe(false);
  });
});

describe('a session hash', () => {
  const TIMES = { creationTime: '1795206008503', lastAccessedTime: '1795206008600', maxInactiveInterval: '1800' };
  const read = (fields: Record<string, string>) =>
    readSpringSession(Object.entries(fields).map(([name, text]) => [name, Buffer.from(text)]));

  it.each(Object.keys(TIMES))('without a readable %s is none', (name) => {
    for (const text of ['', 'null', '1.5', '"1800"', 'x', '[]', '1e400']) {
      expect([text, read({ ...TIMES, [name]: text })]).toEqual([text, undefined]);
    }
    const { [name as keyof typeof TIMES]: _left, ...others } = TIMES;
    expect(read(others)).toBeUndefined();
  });

  it('may have times with their class', () => {
    expect(read({ ...TIMES, creationTime: '["java.lang.Long",1795206008503]' })!.creationTime).toBe(1_795_206_008_503);
  });

  it('may have attributes that cannot be read, and fields of others', () => {
    const { attributes } = read({
      ...TIMES,
      'sessionAttr:a': 'no json',
      'sessionAttr:b': '1',
      other: 'x',
      'sessionAttr:c': 'null',
    })!;
    expect([...attributes]).toEqual([
      ['a', undefined],
      ['b', 1],
    ]);
  });
});
