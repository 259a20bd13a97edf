import { createHash } from 'node:crypto';
import { inspect } from 'node:util';
import { SessionStoreError } from '../../src/errors/session.errors.js';
import {
  RandomSessionTokenGenerator,
  SessionIds,
  SessionToken,
  SessionTokenGenerator,
} from '../../src/session/session-token.js';

/** Draws the given tokens one after the other. */
class ListedTokens extends SessionTokenGenerator {
  readonly #tokens: unknown[];

  constructor(...tokens: unknown[]) {
    super();
    this.#tokens = tokens;
  }

  generate(): string {
    return this.#tokens.shift() as string;
  }
}

const [A, B] = ['a'.repeat(22), 'b'.repeat(128)];

describe('SessionIds', () => {
  it('draw tokens, and use their SHA-256 as id', () => {
    const ids = new SessionIds(new ListedTokens(A));
    const { token, id } = ids.draw();
    expect(token.reveal()).toBe(A);
    expect(id).toBe(createHash('sha256').update(A).digest('base64url'));
    expect(ids.find(token)).toBe(id);
    expect(ids.shown(id)).toBe(id);
  });

  it('are the tokens themselves when they are plain, and are then not printed', () => {
    const ids = new SessionIds(new ListedTokens(A), 'plain');
    const { token, id } = ids.draw();
    expect([token.reveal(), id, ids.find(token)]).toEqual([A, A, A]);
    const hash = createHash('sha256').update(A).digest('base64url');
    expect(ids.shown(id)).toBe(`sha256:${hash.slice(0, 16)}`);
  });

  it('draw from a generator of the application until an id is accepted', () => {
    const ids = new SessionIds(new ListedTokens(A, B), 'plain');
    expect(ids.draw((id) => id === B).id).toBe(B);
  });

  it.each<[string, unknown[]]>([
    ['a token of 21 characters', ['a'.repeat(21)]],
    ['a token of 129 characters', ['a'.repeat(129)]],
    ['a token that cannot be in a cookie', [`${A};`]],
    ['a token that could be another key of the store', [`expires:${A}`]],
    ['bytes', [Buffer.alloc(32)]],
    ['a promise', [Promise.resolve(A)]],
    ['nothing', []],
    ['the same token twice', [A, A]],
  ])('throw when a generator draws %s', (_, tokens) => {
    const ids = new SessionIds(new ListedTokens(...tokens));
    let error: unknown;
    try {
      ids.draw();
      ids.draw();
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(SessionStoreError);
    // The refused token is not printed either: a broken generator may have drawn it for another session before.
    expect(inspect(error)).not.toContain(A.slice(0, 20));
  });

  it('find only tokens that their generator can have drawn', () => {
    const ids = new SessionIds(new RandomSessionTokenGenerator());
    expect(ids.find(new SessionToken('a'.repeat(43)))).toBeDefined();
    for (const length of [22, 42, 44, 128]) expect(ids.find(new SessionToken('a'.repeat(length)))).toBeUndefined();
  });

  it('throw when a generator denies its own tokens', () => {
    class Denies extends RandomSessionTokenGenerator {
      override canHaveDrawn = () => false;
    }
    expect(() => new SessionIds(new Denies()).draw()).toThrow('returned a token that its canHaveDrawn() rejects');
  });
});
