import { type AttributeSerializer, SerializationProblem } from './attribute.serializer.js';
import { SessionAttributeError } from '../errors/session.errors.js';
import { logger } from '../logging/session.logger.js';

/** The attributes of a session as the store has them: text, decoded one by one when somebody asks. */
export class StoredAttributes {
  readonly #texts: Map<string, string>;

  constructor(
    texts: Iterable<readonly [string, string]>,
    readonly serializer: AttributeSerializer,
  ) {
    this.#texts = new Map(texts);
  }

  get names(): string[] {
    return [...this.#texts.keys()];
  }

  text(name: string): string | undefined {
    return this.#texts.get(name);
  }

  /** Records what the store has now; undefined when it no longer has the attribute. */
  replace(name: string, text: string | undefined): void {
    if (text === undefined) this.#texts.delete(name);
    else this.#texts.set(name, text);
  }

  /** The decoded value. A text that cannot be decoded counts as missing: one bad attribute must not cost the session. */
  decode(name: string): unknown {
    const text = this.#texts.get(name);
    if (text === undefined) return undefined;
    try {
      return this.serializer.deserialize(text) ?? undefined;
    } catch {
      // Neither the text nor the error goes into the log: JSON.parse quotes what it could not read.
      logger.warn(`Session attribute "${name}" cannot be decoded and is treated as missing`);
      return undefined;
    }
  }

  /** @throws SessionAttributeError when the serializer cannot bring the value back */
  encode(name: string, value: unknown): string {
    try {
      return this.serializer.serialize(value);
    } catch (error) {
      const problem = error instanceof SerializationProblem ? error.message : 'cannot be serialized';
      throw new SessionAttributeError(name, problem, { cause: error });
    }
  }
}
