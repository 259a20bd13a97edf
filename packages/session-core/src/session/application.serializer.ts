import { AttributeSerializer, hasText } from './attribute.serializer.js';
import { JsonAttributeSerializer, markSafe, readText } from './json-attribute.serializer.js';

/**
 * The serializer of an application, in `SESSION_OPTIONS`. It asks at each use which one that is, because the modules
 * that have a say are constructed in any order.
 */
export class ApplicationSerializer extends AttributeSerializer {
  static {
    markSafe(this.prototype.deserialize);
  }

  /** That of the application's own option. */
  chosen: AttributeSerializer | undefined;
  /** That of an application without the option. */
  byDefault: AttributeSerializer = new JsonAttributeSerializer();

  /** That of these options; undefined when a module has replaced it. */
  static of({ serializer }: { readonly serializer: AttributeSerializer }): ApplicationSerializer | undefined {
    return serializer instanceof ApplicationSerializer ? serializer : undefined;
  }

  serialize(value: unknown): string {
    return this.#current.serialize(value);
  }

  deserialize(text: string): unknown {
    return readText(this.#current, text);
  }

  override hasText(value: unknown, text: string): boolean {
    return hasText(this.#current, value, text);
  }

  /** The name of its class, for the log. */
  get shownName(): string {
    return this.#current.constructor.name;
  }

  get #current(): AttributeSerializer {
    return this.chosen ?? this.byDefault;
  }
}
