import { SessionTokenGenerator, type SessionToken } from '@nest-session/core';
import { RandomSessionTokenGenerator } from '@nest-session/core/internal';

/** Draws the prepared tokens first, then random ones. */
export class PreparedIds extends SessionTokenGenerator {
  readonly #random = new RandomSessionTokenGenerator();
  readonly #prepared: SessionToken[] = [];

  prepare(token: SessionToken): void {
    this.#prepared.push(token);
  }

  generate(): string {
    return this.#prepared.shift()?.reveal() ?? this.#random.generate();
  }
}
