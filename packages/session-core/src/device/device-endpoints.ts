import type { IncomingMessage, ServerResponse } from 'node:http';
import { SessionStoreError } from '../errors/session.errors.js';
import { shownError } from '../logging/shown-error.js';
import { WarnOnce } from '../logging/warn-once.js';
import { appendHeader } from '../resolvers/response-headers.js';
import { hostOf } from '../resolvers/proxied-request.js';
import { DEVICE_ATTRIBUTE } from '../session/attribute-names.js';
import { TrackedSession } from '../session/tracked-session.js';
import { BoundDevices } from './bound-devices.js';
import {
  bindingIdIn,
  bindingIn,
  challengeAt,
  confirmed,
  DEVICE_INDEX,
  type DeviceBinding,
  refreshed,
  registered,
  timeOfChallenge,
} from './device-binding.js';
import { type DeviceProof, hasProof, isSignedBy, proofOf, type PublicKey } from './device-jwt.js';

/** What a browser is answered. It takes any other status for the end of its binding. */
type Answer =
  | {
      readonly status: 200;
      readonly binding: DeviceBinding;
      readonly now: number;
      readonly registered?: TrackedSession;
    }
  /** With a challenge at a refresh: without one, the browser would give up. */
  | { readonly status: 403; readonly refusal?: string; readonly binding?: DeviceBinding; readonly now?: number }
  /** The browser keeps its binding, and tries again. */
  | { readonly status: 503 }
  | { readonly status: 'over'; readonly id: string };

function outcomeOf(answer: Answer): string {
  if (answer.status === 403) return answer.refusal ?? 'challenged';
  return answer.status === 'over' ? 'over' : answer.status === 200 ? 'accepted' : 'failed';
}

/** An attempt more than a rotation in between needs. */
const MOST_ATTEMPTS = 3;

const UNCHANGED = new Error('The binding is as it was');

/** Null for an update that has found nothing to change. */
function unlessUnchanged(error: unknown): null {
  if (error === UNCHANGED) return null;
  throw error;
}

/**
 * Where browsers register, and renew their proofs. Nothing of the application runs before: a status that one of its
 * guards, pipes or limiters chose would end the binding for good.
 */
export class DeviceEndpoints {
  readonly #log = new WarnOnce();
  readonly #register: string;
  readonly #refresh: string;

  constructor(
    private readonly devices: BoundDevices,
    private readonly presentedIds: (request: IncomingMessage) => readonly string[],
    /** Told of each session that was bound, once it is stored, and of when. */
    private readonly onBound: (session: TrackedSession, since: number) => void,
  ) {
    const { paths } = devices.options;
    this.#register = `${paths}/register/`;
    this.#refresh = `${paths}/refresh`;
  }

  serves(request: IncomingMessage, response: ServerResponse): boolean {
    const [path = ''] = (request.url ?? '').split(/[?#]/, 1);
    const isRegistration = path.startsWith(this.#register);
    if (!isRegistration && path !== this.#refresh) return false;
    // Whatever the method: a proxy that redirects turns POST into GET.
    const answer = isRegistration
      ? this.#registration(request, path.slice(this.#register.length))
      : this.#renewal(request);
    const send = (each: Answer) => {
      this.#send(request, response, each);
      this.devices.telemetry?.device(isRegistration ? 'registrations' : 'refreshes', outcomeOf(each));
    };
    void answer.then(send).catch((error: unknown) => {
      // Of an outage, the store tells itself.
      if (!(error instanceof SessionStoreError)) this.#log.warn('failed', `${FAILED}: ${shownError(error)}`);
      send({ status: 503 });
    });
    return true;
  }

  async #registration(request: IncomingMessage, handle: string): Promise<Answer> {
    const id = bindingIdIn(handle);
    const session = id === undefined ? undefined : await this.#find(id);
    if (!session) return this.#refuse(request, undefined, 'unknown-handle');
    const proof = proofOf(request);
    if (!proof?.publicKey) return this.#refuse(request, session, 'malformed');
    if (!isSignedBy(proof, proof.publicKey)) return this.#refuse(request, session, 'wrong-key');
    const ofKey: DeviceProof & { readonly publicKey: PublicKey } = { ...proof, publicKey: proof.publicKey };
    const now = await this.devices.repository.now();
    let refusal: string | undefined;
    let isNew = false;
    const binding = await this.#change(id!, session, (current) => {
      const next = registered(current, handle, ofKey, now);
      refusal = typeof next === 'string' ? next : undefined;
      isNew = refusal === undefined && next !== current;
      return typeof next === 'string' ? current : next;
    });
    if (!binding || refusal !== undefined) return this.#refuse(request, session, refusal ?? 'unknown-handle');
    if (isNew) this.onBound(session, binding.key!.since);
    return { status: 200, binding, now, registered: session };
  }

  async #renewal(request: IncomingMessage): Promise<Answer> {
    const [, , id] = /^("?)([\w-]{43})\1$/.exec(String(request.headers['sec-secure-session-id'])) ?? [];
    // No browser asks so, but a proxy may have taken the header away.
    if (id === undefined) return { status: 503 };
    const session = await this.#find(id);
    const known = session && BoundDevices.bindingOf(session);
    if (!session || !known?.key || (await this.#isOfAnother(request, session))) return { status: 'over', id };
    const now = await this.devices.repository.now();
    if (!hasProof(request)) return { status: 403, binding: known, now };
    const proof = proofOf(request);
    // A key that comes along must never be taken for that of the session.
    if (!proof || proof.publicKey) return this.#refuse(request, session, 'malformed', now);
    const challengedAt = timeOfChallenge(known, proof.challenge);
    // First, because it costs less than the signature.
    if (challengedAt === undefined) return this.#refuse(request, session, 'foreign-challenge', now);
    if (!isSignedBy(proof, known.key.publicKey)) return this.#refuse(request, session, 'wrong-key', now);
    let isAccepted = false;
    const binding = await this.#change(id, session, (current) => {
      const next = refreshed(current, challengedAt, now);
      isAccepted = next !== undefined;
      return next ?? current;
    });
    if (!binding) return { status: 'over', id };
    return isAccepted ? { status: 200, binding, now } : { status: 403, binding, now };
  }

  async #find(id: string): Promise<TrackedSession | undefined> {
    const sessions = await this.devices.repository.findByIndex(DEVICE_INDEX, id);
    return (
      sessions
        .map((each) => TrackedSession.of(each))
        // Throws where the store cannot read it, such as without the key of the encryption: that is no end.
        .find((each) => bindingIn(each.getOwnAttribute(DEVICE_ATTRIBUTE))?.id === id)
    );
  }

  /** Whether the browser has another session by now: what it was bound to before is over for it. */
  async #isOfAnother(request: IncomingMessage, { id }: TrackedSession): Promise<boolean> {
    const ids = this.presentedIds(request);
    if (ids.length === 0 || ids.includes(id)) return false;
    const others = await this.devices.repository.findByIds(ids);
    return others.some((each) => each !== null);
  }

  /** Undefined when the session has ended, or has another binding. The store is not asked when nothing changes. */
  async #change(
    id: string,
    found: TrackedSession,
    change: (current: DeviceBinding) => DeviceBinding,
  ): Promise<DeviceBinding | undefined> {
    let session: TrackedSession | undefined = found;
    for (let attempt = 1; session && attempt <= MOST_ATTEMPTS; attempt++) {
      // A tab that nobody looks at must not keep the session alive.
      session.keepIdle();
      let binding: DeviceBinding | undefined;
      const update = (current: DeviceBinding | undefined) => {
        binding = current?.id === id ? change(current) : undefined;
        if (!binding || binding === current) throw UNCHANGED;
        return binding;
      };
      const isChanged = await session.updateOwnAttribute(DEVICE_ATTRIBUTE, update).catch(unlessUnchanged);
      if (isChanged || isChanged === null) return binding;
      // Another request has given it another id.
      session = await this.#find(id);
    }
    return undefined;
  }

  #refuse(request: IncomingMessage, session: TrackedSession | undefined, reason: string, now?: number): Answer {
    const { id: sessionId, storedPrincipal: principalName } = session ?? {};
    this.devices.securityEvents.report('refused-proof', { request, sessionId, principalName, reason });
    const binding = now === undefined ? undefined : BoundDevices.bindingOf(session!);
    return { status: 403, refusal: reason, ...(binding && { binding, now: now! }) };
  }

  #send(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
    // On Fastify, a plug-in may have set what the application allows elsewhere.
    for (const name of response.getHeaderNames()) if (/^access-control-/i.test(name)) response.removeHeader(name);
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('Cross-Origin-Resource-Policy', 'same-origin');
    if (answer.status === 503) return void response.writeHead(503, { 'Retry-After': '5' }).end();
    if (answer.status === 'over') {
      return sendJson(response, { session_identifier: answer.id, continue: false });
    }
    const { status, binding, now } = answer;
    if (binding && now !== undefined) {
      response.setHeader('Secure-Session-Challenge', `"${challengeAt(binding, now)}";id="${binding.id}"`);
    }
    if (status === 403) return void response.writeHead(403).end();
    const cookie = this.devices.cookieFor(request, binding, answer.now);
    appendHeader(response, 'Set-Cookie', cookie.header);
    const { registered: session } = answer;
    if (!session) return void response.writeHead(200).end();
    // From here on, who has only the session cookie gets no key in its place, unless the store fails.
    response.once('finish', () => void this.#change(binding.id, session, confirmed).catch(() => undefined));
    sendJson(response, this.#configuration(request, binding, cookie));
  }

  #configuration(
    request: IncomingMessage,
    { id }: DeviceBinding,
    cookie: { name: string; attributes: string },
  ): object {
    const { exclude, refreshFrom, paths } = this.devices.options;
    const rules = [paths, ...exclude].map((path) => ({ type: 'exclude', domain: '*', path }));
    return {
      session_identifier: id,
      refresh_url: this.devices.pathFor(request, 'refresh'),
      scope: { origin: originOf(request), include_site: false, scope_specification: rules },
      credentials: [{ type: 'cookie', name: cookie.name, attributes: cookie.attributes }],
      ...(refreshFrom.length > 0 && { allowed_refresh_initiators: refreshFrom }),
    };
  }
}

const FAILED = 'A browser could not register, or renew its proof, and tries again. This is logged once';

/** The origin as the browser knows it: behind a proxy, only the browser knows the port. */
function originOf(request: IncomingMessage): string {
  const { origin, host, ':authority': authority } = request.headers;
  const own = hostOf(request);
  const page = typeof origin === 'string' && URL.canParse(origin) ? new URL(origin) : undefined;
  return page?.protocol === 'https:' && page.hostname === own ? page.origin : `https://${host ?? String(authority)}`;
}

function sendJson(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}
