import type { IncomingMessage, ServerResponse } from 'node:http';
import { type HttpException, HttpStatus } from '@nestjs/common';
import { stringifySetCookie } from 'cookie';
import { WarnOnce } from '../logging/warn-once.js';
import { shownError } from '../logging/shown-error.js';
import type { IndexedSessionRepository } from '../repository/indexed-session.repository.js';
import { AliasedSessionIdResolver, withAlias } from '../resolvers/aliased-session-id.resolver.js';
import { cookieValues } from '../resolvers/cookie-session-id.resolver.js';
import { isSecure } from '../resolvers/proxied-request.js';
import { appendHeader, forbidStoring } from '../resolvers/response-headers.js';
import type { SessionIdResolver } from '../resolvers/session-id.resolver.js';
import type { SecurityEvents } from '../security-events/security-events.js';
import { DEVICE_ATTRIBUTE, PRINCIPAL_ATTRIBUTE } from '../session/attribute-names.js';
import { TrackedSession } from '../session/tracked-session.js';
import type { SessionTelemetry } from '../telemetry/session-telemetry.js';
import type { ResolvedDeviceBoundOptions } from './device-bound.options.js';
import {
  bindingIn,
  boundValue,
  confirmed,
  type DeviceBinding,
  type DeviceEvidence,
  evidenceIn,
  handleOf,
  mayOfferAgain,
  newBinding,
  offeredAgain,
  registrationChallenge,
} from './device-binding.js';
import { ALGORITHMS } from './device-jwt.js';
import { sendRenewalPage } from './renewal-page.js';

export interface DeviceCheck {
  readonly evidence: DeviceEvidence;
  /** Why there is no proof, as far as the request tells; undefined when none is missing. */
  readonly reason: string | undefined;
}

const UNREADABLE: DeviceCheck = { evidence: 'missing', reason: 'unreadable' };

interface BoundResponse {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly session: {
    readonly existing: TrackedSession | undefined;
    readonly found: { readonly device?: DeviceCheck | undefined };
    readonly refusal: HttpException | undefined;
    readonly hasEnded: boolean;
  };
}

export class BoundDevices {
  readonly #log = new WarnOnce();
  readonly #offers = new WeakMap<BoundResponse, DeviceBinding | undefined>();
  /**
   * What requests have shown, by the ids of bindings: a connection that one has opened outlasts its proof, but another
   * session may count when a message of it comes.
   */
  readonly #checks = new WeakMap<IncomingMessage, Map<string, DeviceCheck>>();

  constructor(
    readonly repository: IndexedSessionRepository,
    readonly resolver: SessionIdResolver,
    readonly options: ResolvedDeviceBoundOptions,
    readonly securityEvents: SecurityEvents,
    readonly telemetry: Pick<SessionTelemetry, 'device'> | undefined,
  ) {}

  static bindingOf(session: TrackedSession): DeviceBinding | undefined {
    return bindingIn(session.peekAttribute(DEVICE_ATTRIBUTE));
  }

  /** Looks at the proof of a request, and reports that it is missing. Undefined for a session that is not bound. */
  check(request: IncomingMessage, session: TrackedSession, alias?: string): DeviceCheck | undefined {
    const binding = BoundDevices.bindingOf(session);
    // Otherwise, whoever can spoil the binding in the store could do without the browser.
    if (!binding && session.isUnreadable(DEVICE_ATTRIBUTE)) return this.#missing(request, session, UNREADABLE);
    if (!binding?.key) return undefined;
    const checks = this.#checks.get(request) ?? new Map<string, DeviceCheck>();
    const check = checks.get(binding.id) ?? this.#check(request, session, binding, alias);
    // Nothing else stays so.
    if (check.evidence === 'proven' || check.reason !== undefined)
      this.#checks.set(request, checks.set(binding.id, check));
    if (check.evidence === 'proven') session.setProven(binding.id);
    return check;
  }

  /** Lets a request be counted by what it has shown. One that needs no proof says nothing. */
  count(session: TrackedSession, { evidence, reason }: Partial<DeviceCheck> = {}): void {
    const isExcluded = reason === undefined && (evidence === 'missing' || evidence === 'forged');
    if (!this.telemetry || isExcluded || session.storedPrincipal === undefined) return;
    this.telemetry.device('requests', reason ?? evidence ?? 'unbound');
  }

  /** Whether a request may open a session. `alias`: that of the session, where it is not that of the request. */
  opens(request: IncomingMessage, session: TrackedSession, alias?: string): boolean {
    return this.check(request, session, alias)?.reason === undefined || this.options.mode !== 'enforce';
  }

  #check(request: IncomingMessage, session: TrackedSession, binding: DeviceBinding, alias?: string): DeviceCheck {
    const name = this.resolver.deviceCookie(request, alias)?.name;
    const values = name === undefined ? [] : cookieValues(request.headers.cookie, name);
    const evidence = evidenceIn(binding, values, session.loadedAt);
    if ((evidence !== 'missing' && evidence !== 'forged') || this.#isExcluded(request)) {
      return { evidence, reason: undefined };
    }
    const reason = evidence === 'forged' ? evidence : (skippedBy(request, binding) ?? fetchedFrom(request));
    return this.#missing(request, session, { evidence, reason });
  }

  #missing(request: IncomingMessage, session: TrackedSession, check: DeviceCheck): DeviceCheck {
    const { id: sessionId, storedPrincipal: principalName } = session;
    this.securityEvents.report('missing-proof', { request, sessionId, principalName, reason: check.reason });
    return check;
  }

  /**
   * Before a response: tells its browser to register, where that may help, and remembers that it has. What it changes
   * is saved with the rest. Waits for nothing in most requests, and never fails one.
   */
  beforeResponse(commit: BoundResponse): Promise<unknown> | undefined {
    const session = commit.session.existing;
    if (!session || session.isOver || this.#offers.has(commit)) return undefined;
    const binding = BoundDevices.bindingOf(session);
    // Of another binding, if somebody has signed in since.
    const isProven = binding?.key && commit.session.found.device?.evidence === 'proven';
    if (isProven && !binding.key.isConfirmed) {
      return this.#changed(commit, session, (current) => (current.id === binding.id ? confirmed(current) : current));
    }
    if (isProven || !this.#mayOffer(commit.request, session, binding)) return undefined;
    return this.#offer(commit, session);
  }

  addHeaders(commit: BoundResponse): void {
    const { request, response, session } = commit;
    const { SERVICE_UNAVAILABLE } = HttpStatus;
    if (session.refusal?.getStatus() === SERVICE_UNAVAILABLE && response.statusCode === SERVICE_UNAVAILABLE) {
      response.setHeader('Retry-After', session.found.device?.reason === 'quota_exceeded' ? '60' : '5');
    }
    if (session.hasEnded) {
      const cookie = this.resolver.deviceCookie(request);
      if (cookie && cookieValues(request.headers.cookie, cookie.name, 1).length > 0) {
        const expired = { ...cookie.attributesFor(request), name: cookie.name, value: '', maxAge: 0 };
        appendHeader(response, 'Set-Cookie', stringifySetCookie(expired));
      }
    }
    const offered = this.#offers.get(commit);
    const stored = session.existing?.peekStored(DEVICE_ATTRIBUTE) as DeviceBinding | undefined;
    if (!offered || stored?.id !== offered.id || stored.offers !== offered.offers) return;
    this.telemetry?.device('registrations', 'offered');
    const path = this.pathFor(request, `register/${handleOf(offered)}`);
    const challenge = registrationChallenge(offered);
    response.setHeader(
      'Secure-Session-Registration',
      `(${ALGORITHMS.join(' ')});path="${path}";challenge="${challenge}"`,
    );
    forbidStoring(response);
  }

  sendsPage(request: IncomingMessage, response: ServerResponse): boolean {
    return sendRenewalPage(request, response, this.resolver.deviceCookie(request)!);
  }

  pathFor(request: IncomingMessage, name: string): string {
    const path = `${this.options.paths}/${name}`;
    const { resolver } = this;
    return resolver instanceof AliasedSessionIdResolver ? withAlias(path, resolver.aliasOf(request)) : path;
  }

  cookieFor(request: IncomingMessage, binding: DeviceBinding, now: number) {
    const { lifetime } = this.options;
    const { name, attributesFor } = this.resolver.deviceCookie(request)!;
    const cookie = { ...attributesFor(request), name };
    const [, ...attributes] = stringifySetCookie({ ...cookie, value: '' }).split('; ');
    const value = boundValue(binding, now + lifetime);
    const header = stringifySetCookie({ ...cookie, value, maxAge: lifetime / 1000 });
    return { name, attributes: attributes.join('; '), header };
  }

  #mayOffer(request: IncomingMessage, session: TrackedSession, binding: DeviceBinding | undefined): boolean {
    if (typeof session.peekAttribute(PRINCIPAL_ATTRIBUTE) !== 'string') return false;
    if (session.peekAttribute(DEVICE_ATTRIBUTE) === false) return false;
    // Only a browser says so, and it registers over https alone.
    if (request.headers['sec-fetch-site'] === undefined || !isSecure(request)) return false;
    if (!this.resolver.deviceCookie(request)) return false;
    return !binding || mayOfferAgain(binding, session.loadedAt);
  }

  async #offer(commit: BoundResponse, session: TrackedSession): Promise<void> {
    const now = await this.repository.now().catch(() => undefined);
    if (now === undefined) return void this.#offers.set(commit, undefined);
    await this.#changed(commit, session, (current) => {
      if (!current) return newBinding(now);
      return mayOfferAgain(current, now) ? offeredAgain(current, now) : current;
    });
  }

  /** Nobody fails to sign in because of it: the next response tries again. */
  async #changed(
    commit: BoundResponse,
    session: TrackedSession,
    change: (current: DeviceBinding) => DeviceBinding,
  ): Promise<void> {
    this.#offers.set(commit, undefined);
    let before: DeviceBinding | undefined;
    try {
      const after = await session.updateOwnAttribute<DeviceBinding>(DEVICE_ATTRIBUTE, (current) => {
        before = current;
        return change(current!);
      });
      if (after && after.offers !== before?.offers) this.#offers.set(commit, after);
    } catch (error) {
      this.#log.warn('offer', `A session could not be bound to its browser: ${shownError(error)}. This is logged once`);
    }
  }

  #isExcluded({ url = '', headers }: IncomingMessage): boolean {
    const [path = ''] = url.split(/[?#]/, 1);
    // What serves the request may look for another path than this one, such as that of a gateway.
    if (headers.upgrade !== undefined || !isPlain(path)) return false;
    return this.options.exclude.some((each) => path === each || path.startsWith(`${each}/`));
  }
}

const ANY_HOST = 'http://any.invalid';

/** Whether every server takes a path for what it looks like. */
function isPlain(path: string): boolean {
  if (/%(?:2e|2f|5c)|[\\;]|\/\//i.test(path) || !URL.canParse(path, ANY_HOST)) return false;
  return new URL(path, ANY_HOST).pathname === path;
}

/** Why the browser itself says that it comes without a proof. Anybody can say so. */
function skippedBy({ headers }: IncomingMessage, { id }: DeviceBinding): string | undefined {
  const all = [headers['secure-session-skipped'] ?? []].flat().join(',').slice(0, 2000);
  const own = all.split(',').find((each) => !each.includes('session_identifier') || each.includes(`"${id}"`));
  return /^\s*(unreachable|server_error|quota_exceeded)\b/.exec(own ?? '')?.[1];
}

function fetchedFrom({ headers }: IncomingMessage): string {
  const site = headers['sec-fetch-site'];
  return site === 'cross-site' || site === 'same-site' ? site : 'missing';
}
