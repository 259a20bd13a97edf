import { logger } from '@nest-session/redis-events/internal';

const MOST_TOLD = 100;

/** The classes of an application whose data counts, each with the field that says what the class itself would say. */
export class OwnClasses {
  readonly #fields: ReadonlyMap<string, string>;
  readonly #told = new Set<string>();

  /** `isLogging`: whether a class that is missing here is logged, once. */
  constructor(
    fields: Readonly<Record<string, string>> = {},
    private readonly isLogging = false,
  ) {
    this.#fields = new Map(Object.entries(fields));
  }

  /** Undefined for a class that the application has not named. */
  fieldOf(name: string): string | undefined {
    return this.#fields.get(name);
  }

  /** `what`: what the class is to Spring Security. */
  tellOf(name: string, what: string): void {
    // A map has no class that anybody could name.
    if (!this.isLogging || name === '' || this.#told.has(name) || this.#told.size === MOST_TOLD) return;
    this.#told.add(name);
    logger.warn(
      `${what} of the class ${JSON.stringify(name)} was ignored in a session of Spring, because only the class knows what its ` +
        "fields mean: name the field to read in option `ownClasses: { '<class>': '<field>' }` of SpringSessionModule",
    );
  }
}

export const NO_OWN_CLASSES: OwnClasses = new OwnClasses();
