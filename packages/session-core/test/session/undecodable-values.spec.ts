import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { PRINCIPAL_ATTRIBUTE } from '../../src/session/attribute-names.js';
import { JsonAttributeSerializer } from '../../src/session/json-attribute.serializer.js';
import { generateSessionKey, SessionIds } from '../../src/session/session-token.js';
import { SessionSnapshot } from '../../src/session/session-snapshot.js';
import { RecordingWriter } from '../support/recording.writer.js';

const GARBAGE = '{secret';
const PRINCIPAL = PRINCIPAL_ATTRIBUTE;

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

describe('a value that cannot be decoded', () => {
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

  it('is found by an application that reads every attribute', () => {
    const session = new RecordingWriter().restore({ fine: '1', broken: GARBAGE });
    const readAll = () => session.attributeNames.forEach((name) => session.getRequiredAttribute(name));
    expect(readAll).toThrow('"broken" is required and missing');
  });

  it('counts as missing for updateAttribute, which replaces exactly that text', async () => {
    const writer = new RecordingWriter();
    const session = writer.restore({ count: GARBAGE });
    await expect(session.updateAttribute<number>('count', (count = 0) => count + 1)).resolves.toBe(1);
    expect(writer.writes).toMatchObject([{ expected: { name: 'count', text: GARBAGE } }]);
    expect(writer.attributes).toEqual([{ count: '1' }]);
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
