import { RandomSessionIdGenerator, SessionIdGenerator, type SessionToken } from '@nest-session/core';

/** Draws the prepared tokens first, then random ones. */
export class PreparedIds extends SessionIdGenerator {
  readonly #random = new RandomSessionIdGenerator();
  readonly #prepared: SessionToken[] = [];

  prepare(token: SessionToken): void {
    this.#prepared.push(token);
  }

  generate(): string {
    return this.#prepared.shift()?.reveal() ?? this.#random.generate();
  }
}
