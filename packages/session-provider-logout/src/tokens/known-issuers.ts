import { isDeepStrictEqual } from 'node:util';
import { logger, shownError } from '@nest-session/core/internal';
import {
  type ProviderIssuerFinder,
  resolveFoundIssuer,
  type ResolvedIssuer,
  type ResolvedProviderLogoutOptions,
} from '../configuration/provider-logout.options.js';
import { IssuerKeys } from './issuer-keys.js';
import { UnavailableError } from './refused-token.error.js';

export interface KnownIssuer {
  readonly config: ResolvedIssuer;
  readonly keys: IssuerKeys;
}

interface FoundIssuer extends KnownIssuer {
  readonly foundAt: number;
}

// Milliseconds.
const FRESH = 10 * 60_000;
const PATIENCE = 5000;
const MOST = 1000;

/** The configured issuers: nothing is requested from any other one. */
export class KnownIssuers {
  readonly #listed = new Map<string, KnownIssuer>();
  readonly #finder: ProviderIssuerFinder | undefined;
  /** The one that was found last comes last. */
  readonly #found = new Map<string, FoundIssuer>();
  readonly #finding = new Map<string, Promise<KnownIssuer | undefined>>();
  #hasFailed = false;

  constructor({ issuers }: Pick<ResolvedProviderLogoutOptions, 'issuers'>) {
    if (typeof issuers === 'function') this.#finder = issuers;
    else for (const config of issuers) this.#listed.set(config.issuer, { config, keys: new IssuerKeys(config) });
  }

  /** `name`: of a token that nobody has verified. @throws UnavailableError when the application's function fails */
  async find(name: string): Promise<KnownIssuer | undefined> {
    const known = this.#listed.get(name);
    if (known || !this.#finder) return known;
    const before = this.#found.get(name);
    if (before && performance.now() - before.foundAt < FRESH) return before;
    const finding = this.#finding.get(name) ?? this.#look(this.#finder, name);
    this.#finding.set(name, finding);
    return finding.finally(() => this.#finding.delete(name));
  }

  async #look(finder: ProviderIssuerFinder, name: string): Promise<KnownIssuer | undefined> {
    const config = await this.#ask(finder, name);
    const before = this.#found.get(name);
    this.#found.delete(name);
    if (!config) return undefined;
    const keys = before && isDeepStrictEqual(before.config.keys, config.keys) ? before.keys : new IssuerKeys(config);
    const found = { config, keys, foundAt: performance.now() };
    this.#found.set(name, found);
    for (const oldest of this.#found.keys()) if (this.#found.size > MOST) this.#found.delete(oldest);
    return found;
  }

  async #ask(find: ProviderIssuerFinder, name: string): Promise<ResolvedIssuer | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no result within ${PATIENCE} ms`)), PATIENCE);
    });
    try {
      const found = await Promise.race([find(name), tooLate]);
      if (found === undefined || found === null) return undefined;
      if (found.issuer !== name) throw new Error('it found another issuer than was asked for');
      return resolveFoundIssuer(found);
    } catch (cause) {
      // Once: the name in it may be anybody's.
      if (!this.#hasFailed)
        logger.error(
          `The function \`issuers\` failed, so logouts get a 503 response: ${shownError(cause)}. Logged once`,
        );
      this.#hasFailed = true;
      throw new UnavailableError('The issuer could not be looked up', undefined, { cause });
    } finally {
      clearTimeout(timer);
    }
  }
}
