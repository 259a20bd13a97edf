import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { SessionAttributeError, SessionStoreError } from '../../src/errors/session.errors.js';
import type { SessionEvent } from '../../src/events/session.events.js';
import { MapSessionRepository } from '../../src/memory/map-session.repository.js';
import { JsonAttributeSerializer } from '../../src/session/json-attribute.serializer.js';
import type { SessionChange, WriteReply } from '../../src/session/session-change.js';
import { generateSessionKey, SessionIds } from '../../src/session/session-token.js';
import { SessionSnapshot } from '../../src/session/session-snapshot.js';
import { PRINCIPAL_NAME_INDEX_NAME } from '../../src/session/session.js';
import type { UndecodablePolicy } from '../../src/session/stored-attributes.js';
import { RecordingWriter } from '../support/recording.writer.js';

const GARBAGE = '{secret';
const PRINCIPAL = PRINCIPAL_NAME_INDEX_NAME;

let warn: jest.SpiedFunction<Logger['warn']>;

function lines(): string[] {
  return warn.mock.calls.map(([line]) => String(line));
}

beforeEach(() => {
  warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
});

afterEach(() => {
  for (const line of lines()) expect(line).not.toContain('secret');
  warn.mockRestore();
});

function writerOf(undecodable: UndecodablePolicy): RecordingWriter {
  return Object.assign(new RecordingWriter(), { undecodable });
}

describe('a value that cannot be decoded, with `drop-attribute`', () => {
  it('reads as undefined, and its name is not listed afterwards', () => {
    const session = new RecordingWriter().restore({ broken: GARBAGE, fine: '1', [PRINCIPAL]: GARBAGE });
    expect(session.attributeNames).toEqual(['broken', 'fine', PRINCIPAL]);
    expect(session.getAttribute('broken')).toBeUndefined();
    expect(session.getAttributeOrDefault('broken', 'none')).toBe('none');
    expect(() => session.getRequiredAttribute('broken')).toThrow('"broken" is required and missing');
    expect(session.principalName).toBeUndefined();
    expect(session.getAttribute('fine')).toBe(1);
    expect(session.attributeNames).toEqual(['fine']);
  });

  it('is logged once for each attribute, with id and name but not the value', () => {
    const writer = new RecordingWriter();
    const session = writer.restore({ broken: GARBAGE, 'a\nb': GARBAGE });
    for (const name of ['broken', 'a\nb', 'broken', 'broken']) session.getAttribute(name);
    const id = session.id;
    session.changeSessionId();
    session.getAttribute('broken');
    expect(lines()).toEqual([
      expect.stringContaining(`Attribute "broken" of session ${id} cannot be decoded: reads of it give undefined`),
      expect.stringContaining(`Attribute "a\\nb" of session ${id} cannot be decoded`),
    ]);
    writer.restore({ broken: GARBAGE }).getAttribute('broken');
    expect(lines()).toHaveLength(2);
  });

  it('is logged without an id that is a token', () => {
    const ids = new SessionIds(undefined, 'plain');
    const session = Object.assign(new RecordingWriter(), { shown: (id: string) => ids.shown(id) }).restore({
      a: GARBAGE,
    });
    session.getAttribute('a');
    expect(lines()).toEqual([expect.stringContaining(`session ${ids.shown(session.id)} `)]);
    expect(lines().join()).not.toContain(session.id);
  });

  it('stays in the store until the attribute is set or removed', async () => {
    const writer = new RecordingWriter();
    const session = writer.restore({ broken: GARBAGE, other: GARBAGE, fine: '1' });
    session.getAttribute('broken');
    session.getAttribute('other');
    expect(session.isDirty).toBe(false);
    session.setAttribute('fine', 2);
    await session.save();
    session.setAttribute('broken', 'mended');
    session.removeAttribute('other');
    await session.save();
    expect(writer.attributes).toEqual([{ fine: '2' }, { broken: '"mended"', other: null }]);
    expect(session.attributeNames).toEqual(['broken', 'fine']);
    expect(session.getAttribute('broken')).toBe('mended');
  });

  it('counts as missing for updateAttribute, which replaces exactly that text', async () => {
    const writer = new RecordingWriter();
    const session = writer.restore({ count: GARBAGE });
    await expect(session.updateAttribute<number>('count', (count = 0) => count + 1)).resolves.toBe(1);
    expect(writer.writes).toMatchObject([{ expected: { name: 'count', text: GARBAGE } }]);
    expect(writer.attributes).toEqual([{ count: '1' }]);
  });
});

describe('a value that cannot be decoded, with `throw`', () => {
  it('throws at every read an error that names the attribute and not the value', async () => {
    const session = writerOf('throw').restore({ broken: GARBAGE, fine: '1', [PRINCIPAL]: GARBAGE });
    const error = errorOf(() => session.getAttribute('broken'));
    expect(error).toBeInstanceOf(SessionAttributeError);
    expect(error).toMatchObject({ attributeName: 'broken' });
    // A cause would quote the value.
    expect(error).not.toHaveProperty('cause');
    expect((error as Error).message).toMatch(/^Session attribute "broken" cannot be decoded\. /);
    expect((error as Error).message).not.toContain('secret');
    expect(() => session.getAttribute('broken')).toThrow('cannot be decoded');
    expect(() => session.getAttributeOrDefault('broken', 1)).toThrow('cannot be decoded');
    expect(() => session.principalName).toThrow(SessionAttributeError);
    await expect(session.updateAttribute('broken', () => 1)).rejects.toThrow(SessionAttributeError);
    expect(session.getAttribute('fine')).toBe(1);
    expect(session.attributeNames).toEqual(['broken', 'fine', PRINCIPAL]);
    expect(lines()).toEqual([
      expect.stringContaining('Attribute "broken" of session'),
      expect.stringContaining(`Attribute "${PRINCIPAL}" of session`),
    ]);
  });

  it('prevents neither a save nor setting it', async () => {
    const writer = writerOf('throw');
    const session = writer.restore({ broken: GARBAGE, [PRINCIPAL]: GARBAGE });
    expect(session.peekAttribute('broken')).toBeUndefined();
    session.principalName = 'ann';
    session.setAttribute('broken', 1);
    await session.save();
    expect(writer.attributes).toEqual([{ [PRINCIPAL]: '"ann"', broken: '1' }]);
    expect(session.getAttribute('broken')).toBe(1);
  });
});

describe('a value that cannot be decoded, with `drop-session`', () => {
  const ended: SessionEvent[] = [];
  let isFailing: boolean;

  class Store extends MapSessionRepository {
    protected override async write(change: SessionChange): Promise<WriteReply> {
      if (isFailing) throw new SessionStoreError('The store is down');
      return super.write(change);
    }

    /** A session whose attributes have these texts. */
    async put(attributes: Record<string, string>): Promise<string> {
      const { id } = generateSessionKey();
      const times = { maxInactiveInterval: 1800, absoluteTimeout: -1 };
      const indexes = new Map([[PRINCIPAL, 'ann']]);
      const texts = new Map(Object.entries(attributes));
      await this.write({ kind: 'create', id, presentedIds: [], ...times, attributes: texts, indexes });
      return id;
    }

    /** Attributes that can be iterated once, as a store may return them. */
    protected override async load(ids: readonly string[]) {
      const records = await super.load(ids);
      return records.map((record) => ({ ...record, attributes: [...record.attributes].values() }));
    }
  }

  function storeOf(undecodable: UndecodablePolicy): Store {
    const dispatcher = {
      dispatch: async (event: SessionEvent) => void (event.type === 'created' || ended.push(event)),
      broadcast: async () => undefined,
    };
    return new Store({ undecodable, dispatcher });
  }

  beforeEach(() => {
    ended.length = 0;
    isFailing = false;
  });

  it('ends the session at its load as deleted, with the readable attributes, and logs one line', async () => {
    const store = storeOf('drop-session');
    const [id, other] = [
      await store.put({ fine: '1', broken: GARBAGE, worse: GARBAGE }),
      await store.put({ fine: '2' }),
    ];
    const [found, alive, again] = await store.findByIds([id, other, id]);
    expect([found, again]).toEqual([null, null]);
    expect(alive?.getAttribute('fine')).toBe(2);
    expect(await store.findById(id)).toBeNull();
    expect(lines()).toEqual([
      expect.stringContaining(`Session ${id} was ended: its attribute "broken" cannot be decoded`),
    ]);

    expect(ended).toMatchObject([{ type: 'deleted', sessionId: id, dataLost: false }]);
    expect(ended[0]!.session.getAttribute('fine')).toBe(1);
    expect(ended[0]!.session.getAttribute('broken')).toBeUndefined();
  });

  it('ends the sessions that a look-up finds as well', async () => {
    const store = storeOf('drop-session');
    const broken = await store.put({ broken: GARBAGE });
    const fine = await store.put({ fine: '1' });
    expect((await store.findByPrincipalName('ann')).map(({ id }) => id)).toEqual([fine]);
    expect(ended.map(({ sessionId }) => sessionId)).toEqual([broken]);
  });

  it('logs nothing when another request ended the session first', async () => {
    const store = storeOf('drop-session');
    const id = await store.put({ broken: GARBAGE });
    expect(await Promise.all([store.findById(id), store.findById(id)])).toEqual([null, null]);
    expect(lines()).toHaveLength(1);
    expect(ended).toHaveLength(1);
  });

  it('fails the load with a store error when the session cannot be ended', async () => {
    const store = storeOf('drop-session');
    const id = await store.put({ broken: GARBAGE });
    isFailing = true;
    await expect(store.findById(id)).rejects.toThrow(SessionStoreError);
    expect(lines()).toEqual([]);
  });

  it.each(['throw', 'drop-attribute'] as const)('ends nothing under `%s`', async (policy) => {
    const store = storeOf(policy);
    const id = await store.put({ fine: '1', broken: GARBAGE });
    expect((await store.findById(id))?.getAttribute('fine')).toBe(1);
    expect(ended).toEqual([]);
    expect(lines()).toEqual([]);
  });
});

describe('a value that cannot be decoded, in the session of an event', () => {
  it('is left out, and logged once', () => {
    const record = { id: generateSessionKey().id, creationTime: 1, lastAccessedTime: 2 };
    const timeouts = { maxInactiveInterval: 3, absoluteTimeout: -1 };
    const attributes: [string, string][] = [
      ['broken', GARBAGE],
      ['fine', '1'],
    ];
    const ids = new SessionIds();
    const snapshot = new SessionSnapshot({ ...record, ...timeouts, attributes }, new JsonAttributeSerializer(), ids);
    expect([snapshot.getAttribute('broken'), snapshot.getAttribute('broken')]).toEqual([undefined, undefined]);
    expect(snapshot.attributeNames).toEqual(['fine']);
    expect(lines()).toEqual([expect.stringContaining(`Attribute "broken" of session ${record.id} cannot be decoded`)]);
  });

  it('is logged under a fingerprint of the id when the form of the id is not known', () => {
    const { id } = generateSessionKey();
    const times = { creationTime: 1, lastAccessedTime: 2, maxInactiveInterval: 3, absoluteTimeout: -1 };
    new SessionSnapshot({ id, ...times, attributes: [['a', GARBAGE]] }, new JsonAttributeSerializer()).getAttribute(
      'a',
    );
    expect(lines()).toEqual([expect.stringMatching(/of session sha256:/)]);
    expect(lines().join()).not.toContain(id);
  });
});

function errorOf(action: () => unknown): unknown {
  try {
    action();
    return undefined;
  } catch (error) {
    return error;
  }
}
