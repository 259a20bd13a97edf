import { SessionIdGenerator, type SessionToken } from '@nest-session/core';
import { RandomSessionIdGenerator } from '@nest-session/core/internal';

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
