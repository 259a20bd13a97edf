import type { IncomingMessage, ServerResponse } from 'node:http';
import { SessionStoreError } from '@nest-session/core';
import { type SecurityEvents, shownError, WarnOnce } from '@nest-session/core/internal';
import type { ProviderMessage, ResolvedProviderLogoutOptions } from '../configuration/provider-logout.options.js';
import { RefusedTokenError, REFUSALS, type Refusal, UnavailableError } from '../tokens/refused-token.error.js';
import type { TokenVerifier } from '../tokens/token-verifier.js';
import type { MessageHandler } from './message-handler.js';
import { bodyOf, contentTypeOf, eventTokenIn, logoutTokenIn } from './request-body.js';

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

const CONTENT_TYPES: Readonly<Record<ProviderMessage, string>> = {
  'back-channel': 'application/x-www-form-urlencoded',
  events: 'application/secevent+jwt',
};

/** What RFC 8935 calls a refusal. */
const EVENT_ERRORS: Partial<Readonly<Record<Refusal, string>>> = {
  'unknown-issuer': 'invalid_issuer',
  'not-accepted': 'access_denied',
  authorization: 'authentication_failed',
  audience: 'invalid_audience',
  signature: 'invalid_key',
  'unknown-key': 'invalid_key',
  encrypted: 'invalid_key',
};

const STATUSES: Partial<Readonly<Record<Refusal, number>>> = { 'too-large': 413, 'foreign-type': 415 };

/** Where identity providers send what they have to tell. Nothing of the application runs before. */
export class ProviderEndpoints {
  readonly #log = new WarnOnce();
  readonly #running = new Set<Promise<void>>();
  readonly #kinds: ReadonlyMap<string, ProviderMessage>;
  #isClosing = false;

  constructor(
    { path }: ResolvedProviderLogoutOptions,
    private readonly verifier: TokenVerifier,
    private readonly handler: MessageHandler,
    private readonly securityEvents: SecurityEvents,
  ) {
    this.#kinds = new Map([
      [`${path}/logout`, 'back-channel'],
      [`${path}/events`, 'events'],
    ]);
  }

  readonly serves = (request: IncomingMessage, response: ServerResponse): boolean => {
    const [path = ''] = (request.url ?? '').split(/[?#]/, 1);
    const kind = this.#kinds.get(path);
    if (!kind) return false;
    const serving = this.#serve(request, response, kind).finally(() => this.#running.delete(serving));
    this.#running.add(serving);
    return true;
  };

  /** From now on, the provider is told to come again. Resolves when all that has begun is done. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.#running);
  }

  async #serve(request: IncomingMessage, response: ServerResponse, kind: ProviderMessage): Promise<void> {
    try {
      const answer = await this.#answer(request, kind);
      if (answer) send(response, answer);
    } catch (error) {
      send(response, this.#failure(request, kind, error));
    }
  }

  async #answer(request: IncomingMessage, kind: ProviderMessage): Promise<Answer | undefined> {
    if (request.method !== 'POST') return { status: 405, headers: { Allow: 'POST' } };
    if (this.#isClosing) throw new UnavailableError('The application is closing');
    const body = await bodyOf(request);
    if (body === undefined) return undefined;
    if (contentTypeOf(request) !== CONTENT_TYPES[kind]) throw new RefusedTokenError('foreign-type');
    const text = kind === 'events' ? eventTokenIn(body) : logoutTokenIn(body);
    const token = await this.verifier.verify(text, kind, request.headers.authorization);
    if (kind === 'back-channel') return { status: 200, body: { ended: await this.handler.logOut(token, request) } };
    await this.handler.takeEvents(token, request);
    return { status: 202 };
  }

  #failure(request: IncomingMessage, kind: ProviderMessage, error: unknown): Answer {
    if (error instanceof RefusedTokenError) return this.#refusal(request, kind, error);
    // Of an outage of the store, that tells itself, and of the keys, those.
    if (!(error instanceof SessionStoreError || error instanceof UnavailableError))
      this.#log.warn(
        'failed',
        `A logout or event of an identity provider failed: ${shownError(error)}. This is logged once`,
      );
    const retryAfter = error instanceof UnavailableError ? error.retryAfter : 5;
    const body = bodyFor(kind, 'temporarily_unavailable', 'Try again later');
    return { status: 503, headers: { 'Retry-After': String(retryAfter) }, body };
  }

  #refusal(request: IncomingMessage, kind: ProviderMessage, { reason, issuer }: RefusedTokenError): Answer {
    const isTold = this.securityEvents.report('refused-provider-token', { request, reason, by: issuer });
    if (!isTold)
      this.#log.warn(
        reason,
        `A logout or event of an identity provider was refused: ${REFUSALS[reason]}. This is logged once`,
      );
    const code = (kind === 'events' ? EVENT_ERRORS[reason] : undefined) ?? 'invalid_request';
    const status = code === 'authentication_failed' ? 401 : (STATUSES[reason] ?? 400);
    return { status, body: bodyFor(kind, code, REFUSALS[reason]) };
  }
}

function bodyFor(kind: ProviderMessage, code: string, description: string): object {
  return kind === 'events' ? { err: code, description } : { error: code, error_description: description };
}

function send(response: ServerResponse, { status, headers = {}, body }: Answer): void {
  if (response.headersSent || response.destroyed) return;
  const text = body && JSON.stringify(body);
  response.writeHead(status, {
    'Cache-Control': 'no-store',
    ...(text === undefined ? { 'Content-Length': '0' } : { 'Content-Type': 'application/json' }),
    ...headers,
  });
  response.end(text);
}
