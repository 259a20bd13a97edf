import { logger, shownError, shownText } from '@nest-session/core/internal';
import { createLocalJWKSet, errors, type FlattenedJWSInput, type JSONWebKeySet, type JWSHeaderParameters } from 'jose';
import { addressProblem, type ResolvedIssuer } from '../configuration/provider-logout.options.js';
import { fetchJson } from './fetch-json.js';
import { UnavailableError } from './refused-token.error.js';

// Milliseconds.
const FRESH = 10 * 60_000;
const LONGEST_STALE = 24 * 3600_000;
/** Between two loads, whoever asks: tokens with made-up ids of keys must not load the provider. */
const COOLDOWN = 30_000;
const COOLDOWN_AFTER_FAILURE = 5000;

type KeySet = ReturnType<typeof createLocalJWKSet>;

/**
 * The public keys of an issuer, as it has published them. While it cannot be reached, the keys of the last day count.
 * Of the keys that fit a token, `jose` chooses.
 */
export class IssuerKeys {
  #keys: KeySet | undefined;
  #loadedAt = -Infinity;
  #triedAt = -Infinity;
  #hasFailed = false;
  #loading: Promise<void> | undefined;

  constructor(private readonly issuer: Pick<ResolvedIssuer, 'issuer' | 'keys'>) {
    if (issuer.keys && 'jwks' in issuer.keys) this.#keys = createLocalJWKSet(issuer.keys.jwks as JSONWebKeySet);
  }

  /**
   * @throws JWKSNoMatchingKey when the issuer has no such key, JWKSMultipleMatchingKeys when the token does not say
   *   which of several, UnavailableError when nobody can tell now
   */
  readonly find = async (header: JWSHeaderParameters, token: FlattenedJWSInput) => {
    if (this.#isFixed) return this.#keys!(header, token);
    const askedAt = performance.now();
    const age = askedAt - this.#loadedAt;
    if (age > FRESH) {
      const loading = this.#load();
      if (age > LONGEST_STALE) await loading;
      else await loading.catch(() => undefined);
    }
    try {
      return await this.#keys!(header, token);
    } catch (error) {
      const isNew = this.#loadedAt > askedAt;
      if (isNew || !(error instanceof errors.JWKSNoMatchingKey)) throw error;
      // The issuer may have a new key.
      await this.#load();
      return this.#keys!(header, token);
    }
  };

  get #isFixed(): boolean {
    return this.issuer.keys !== undefined && 'jwks' in this.issuer.keys;
  }

  /** @throws UnavailableError when it fails, and while it may not be tried */
  #load(): Promise<void> {
    if (this.#loading) return this.#loading;
    const wait = this.#triedAt + (this.#hasFailed ? COOLDOWN_AFTER_FAILURE : COOLDOWN) - performance.now();
    if (wait > 0) return Promise.reject(new UnavailableError(COOLING_DOWN, Math.ceil(wait / 1000)));
    this.#loading = this.#loadNow().finally(() => {
      this.#loading = undefined;
      this.#triedAt = performance.now();
    });
    return this.#loading;
  }

  async #loadNow(): Promise<void> {
    try {
      const address = await this.#address();
      const keys = await fetchJson(address);
      this.#keys = createLocalJWKSet(keys as JSONWebKeySet);
      this.#loadedAt = performance.now();
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed)
        logger.error(`The keys of the identity provider ${this.#name} could not be read: ${reasonOf(error)}`);
      this.#hasFailed = true;
      if (error instanceof UnavailableError) throw error;
      throw new UnavailableError('The keys of the issuer are of no use', undefined, { cause: error });
    }
  }

  async #address(): Promise<string> {
    const { issuer, keys } = this.issuer;
    if (keys && 'jwksUri' in keys) return keys.jwksUri;
    const document = await fetchJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
    const { issuer: named, jwks_uri: address } = document as { readonly issuer?: unknown; readonly jwks_uri?: unknown };
    // Otherwise an issuer could name the keys of another.
    if (named !== issuer) throw new Error(`its discovery document names the issuer ${shownText(String(named))}`);
    // Only who is on this machine may send a request to it.
    const isSafe = typeof address === 'string' && (address.startsWith('https:') || issuer.startsWith('http:'));
    if (isSafe && addressProblem(address) === undefined) return address;
    throw new Error('its discovery document has no `jwks_uri` with https');
  }

  get #name(): string {
    return shownText(this.issuer.issuer);
  }
}

const COOLING_DOWN = 'The keys of the issuer were loaded a moment ago';

function reasonOf(error: unknown): string {
  if (!(error instanceof UnavailableError)) return shownError(error);
  return `${error.message}: ${shownError(error.cause)}`;
}
