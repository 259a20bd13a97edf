import { Injectable } from '@nestjs/common';
import { SessionStoreError } from '@nest-session/core';

/** How many classes are told apart. The others share one name. */
const MOST_TYPES = 50;
const OTHER = '_OTHER';
const CLASS_NAME = /^[A-Za-z_$][\w$]{0,63}$/;

/**
 * The classes of errors, as the attribute `error.type` has them. The name of an error, which anybody may set, and its
 * message are never read.
 */
@Injectable()
export class ErrorTypes {
  readonly #known = new Set<string>();

  of(error: unknown): string {
    const name = classOf(causeOf(error));
    if (!CLASS_NAME.test(name)) return OTHER;
    if (this.#known.size < MOST_TYPES) this.#known.add(name);
    return this.#known.has(name) ? name : OTHER;
  }
}

/** What a store threw says more than that it is a store. */
function causeOf(error: unknown): unknown {
  return error instanceof SessionStoreError && error.cause instanceof Error ? error.cause : error;
}

function classOf(error: unknown): string {
  if (typeof error !== 'object') return typeof error;
  const type = error?.constructor as { readonly name: string } | undefined;
  return type?.name ?? OTHER;
}
