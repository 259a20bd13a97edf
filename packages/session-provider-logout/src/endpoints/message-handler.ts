import type { IncomingMessage } from 'node:http';
import { logger, type SecurityEvents, shownText, WarnOnce } from '@nest-session/core/internal';
import type { ProviderAction } from '../configuration/provider-logout.options.js';
import type { ProviderSessions, ProviderTarget } from '../endings/provider-sessions.js';
import type { ProviderEventDispatcher } from '../events/provider-event.dispatcher.js';
import type { ProviderEvent, ProviderEventSession } from '../events/provider-event.js';
import { actionOf, eventsIn, meaningOf, type PushedEvent } from '../events/pushed-event.js';
import {
  BACK_CHANNEL,
  isObject,
  LONGEST_AGE,
  nowInSeconds,
  TOLERANCE,
  type VerifiedToken,
} from '../tokens/token-verifier.js';

// Seconds: transmitters repeat for days what they could not deliver.
const OLDEST_EVENT = 7 * 24 * 3600;

type Told = Omit<ProviderEvent, 'issuer' | 'jti'>;

/** Does what a verified token says, once. When it fails, the same token does the rest. */
export class MessageHandler {
  readonly #log = new WarnOnce();

  constructor(
    private readonly sessions: ProviderSessions,
    private readonly securityEvents: SecurityEvents,
    private readonly handlers: Pick<ProviderEventDispatcher, 'hear'>,
  ) {}

  /** Resolves to how many sessions have ended. @throws as `ProviderSessions.apply()` */
  async logOut(token: VerifiedToken, request: IncomingMessage): Promise<number> {
    const { issuer: iss, jti, iat, exp = Infinity, claims, events } = token;
    if (await this.sessions.knows(iss, jti)) return 0;
    const { sub, sid } = claims as { readonly sub?: string; readonly sid?: string };
    const sessions = await this.sessions.apply({ iss, sub, sid, until: iat }, 'end');
    const lasts = Math.min(exp, iat + LONGEST_AGE) + TOLERANCE - nowInSeconds();
    await this.sessions.remember(iss, jti, Math.max(1, Math.ceil(lasts)) * 1000);
    if (sessions.length === 0) this.#log.warn('nothing', FOUND_NOTHING);
    const subject = { format: 'iss_sub', iss, ...(sub !== undefined && { sub }), ...(sid !== undefined && { sid }) };
    const content = isObject(events[BACK_CHANNEL]) ? events[BACK_CHANNEL] : {};
    const told = { name: 'back-channel', at: iat * 1000, subject, content, action: 'end', sessions } as const;
    this.#tell(token, told, request);
    return sessions.length;
  }

  /** @throws as `ProviderSessions.apply()` */
  async takeEvents(token: VerifiedToken, request: IncomingMessage): Promise<void> {
    const { issuer, jti, iat } = token;
    if (iat < nowInSeconds() - OLDEST_EVENT || (await this.sessions.knows(issuer, jti))) return;
    const told: Told[] = [];
    for (const event of eventsIn(token)) {
      const { name, subject, content, at } = event;
      const action = actionOf(event, token.known.config.actions);
      const sessions = action === 'none' ? [] : await this.#apply(token, event, action);
      told.push({ name, at: at * 1000, subject, content, action, sessions });
    }
    const lasts = iat + OLDEST_EVENT + TOLERANCE - nowInSeconds();
    await this.sessions.remember(issuer, jti, Math.ceil(lasts) * 1000);
    for (const each of told) this.#tell(token, each, request);
  }

  async #apply(
    { issuer, known }: VerifiedToken,
    { name, subject, at }: PushedEvent,
    action: Exclude<ProviderAction, 'none'>,
  ): Promise<ProviderEventSession[]> {
    const { subjects, principalsOf } = known.config;
    const meaning = meaningOf(subject, [issuer, ...subjects]);
    if (meaning) return this.#applyToFirst(meaning, at, action);
    const principals = (await principalsOf?.(subject)) ?? [];
    if (principals.length === 0)
      this.#log.warn(
        `${issuer} ${name}`,
        `${shownText(issuer)} has sent ${shownText(name.slice(0, 200))} ${NO_SUBJECT}`,
      );
    const all = [];
    for (const principal of principals) all.push(...(await this.sessions.applyTo(principal, at, action)));
    return all;
  }

  async #applyToFirst(
    meaning: readonly Omit<ProviderTarget, 'until'>[],
    until: number,
    action: Exclude<ProviderAction, 'none'>,
  ): Promise<ProviderEventSession[]> {
    for (const target of meaning) {
      const found = await this.sessions.apply({ ...target, until }, action);
      if (found.length > 0) return found;
    }
    return [];
  }

  #tell({ issuer, jti }: VerifiedToken, told: Told, request: IncomingMessage): void {
    const { name, action, sessions, content } = told;
    if (action === 'end' && sessions.length > 0) {
      const [first] = sessions;
      const isOfOne = sessions.every(({ principalName }) => principalName === first!.principalName);
      const principalName = isOfOne ? first!.principalName : undefined;
      const facts = { by: issuer, action: name, sessions: sessions.length, principalName };
      this.securityEvents.report('provider-logout', { request, ...facts });
    }
    if (name === 'stream-updated' && content['status'] !== 'enabled') logger.error(`${shownText(issuer)} ${STOPPED}`);
    this.handlers.hear({ issuer, jti, ...told });
  }
}

const FOUND_NOTHING =
  'A logout token of an identity provider has found no session. That is usual for a session that has ended before; if it ' +
  'is always so, pass the claims of the ID token to signIn(name, { provider: claims }). This is logged once';

const NO_SUBJECT =
  'about nobody whom this application knows by it, so no session has ended: see the option `principalsOf`. This is ' +
  'logged once';

const STOPPED = 'sends no more security events, as it says itself: its stream is paused or disabled';
