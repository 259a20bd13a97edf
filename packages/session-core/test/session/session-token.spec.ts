import { createHash } from 'node:crypto';
import { inspect } from 'node:util';
import { generateSessionKey, isWellFormedIdOrToken, sessionTokenOf } from '../../src/session/session-token.js';

describe('session keys', () => {
  it('are 256 random bits, stored as their SHA-256', () => {
    const { token, id } = generateSessionKey();
    expect(Buffer.from(token.reveal(), 'base64url')).toHaveLength(32);
    expect(id).toBe(createHash('sha256').update(token.reveal()).digest('base64url'));
    expect(isWellFormedIdOrToken(id)).toBe(true);
    expect(new Set(Array.from({ length: 100 }, () => generateSessionKey().id)).size).toBe(100);
  });

  it('are drawn until one is accepted', () => {
    const refused: string[] = [];
    const key = generateSessionKey((id) => refused.push(id) === 3);
    expect(key.id).toBe(refused[2]);
  });

  it('have a token that is found again in its revealed text', () => {
    const { token } = generateSessionKey();
    expect(sessionTokenOf(token.reveal())?.reveal()).toBe(token.reveal());
  });

  it('have a token that prints without its secret, whatever prints it', () => {
    const { token } = generateSessionKey();
    expect(String(token)).toBe('[session token]');
    expect(JSON.stringify({ token })).toBe('{"token":"[session token]"}');
    expect(inspect({ token })).toBe('{ token: [session token] }');
  });

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['an empty string', ''],
    ['21 characters', 'a'.repeat(21)],
    ['129 characters', 'a'.repeat(129)],
    ['9 KB', 'a'.repeat(9216)],
    ['a line feed at the end', `${'a'.repeat(43)}\n`],
    ['a line feed inside', `${'a'.repeat(42)}\n`],
    ['another alphabet', `${'a'.repeat(42)}*`],
    ['base64', `${'a'.repeat(42)}+`],
    ['a key pattern', `${'a'.repeat(41)}:*`],
    ['an array of one', ['a'.repeat(43)]],
    ['an object that looks like one', { toString: () => 'a'.repeat(43), length: 43 }],
  ])('are not read from %s', (_, value) => {
    expect(sessionTokenOf(value)).toBeUndefined();
    expect(isWellFormedIdOrToken(value)).toBe(false);
  });
});
