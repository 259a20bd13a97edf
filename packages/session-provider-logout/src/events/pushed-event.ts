import type { ProviderAction, ProviderSubject } from '../configuration/provider-logout.options.js';
import { isName, isObject, type VerifiedToken } from '../tokens/token-verifier.js';
import type { ProviderTarget } from '../endings/provider-sessions.js';

/** One event of a token. */
export interface PushedEvent {
  readonly name: string;
  readonly content: Readonly<Record<string, unknown>>;
  readonly subject: ProviderSubject;
  /** In seconds since the epoch. */
  readonly at: number;
}

const KNOWN = /^https:\/\/schemas\.openid\.net\/secevent\/(?:caep|risc|ssf|sse)\/event-type\/([\w-]+)$/;

export function eventsIn({ events, claims, iat }: VerifiedToken): PushedEvent[] {
  return Object.entries(events).map(([uri, value]) => {
    const content = isObject(value) ? value : {};
    // Older transmitters have the subject inside of the event.
    const subject = [claims['sub_id'], content['subject']].find(isObject) ?? {};
    return { name: KNOWN.exec(uri)?.[1] ?? uri, content, subject, at: timeOf(content['event_timestamp'], iat) };
  });
}

/** `event_timestamp` is in seconds; older transmitters send milliseconds. One of the future is a mistake. */
function timeOf(timestamp: unknown, iat: number): number {
  if (typeof timestamp !== 'number' || !Number.isFinite(timestamp)) return iat;
  return Math.min(timestamp > 1e11 ? timestamp / 1000 : timestamp, iat);
}

const DEFAULTS: Readonly<Record<string, ProviderAction>> = {
  'session-revoked': 'end',
  'sessions-revoked': 'end',
  'account-disabled': 'end',
  'account-purged': 'end',
  'credential-compromise': 'end',
  'credential-change': 'reauthenticate',
  'account-credential-change-required': 'reauthenticate',
};

export function actionOf(
  { name, content }: PushedEvent,
  given: Readonly<Record<string, ProviderAction>>,
): ProviderAction {
  const own = Object.hasOwn(given, name) ? given[name] : undefined;
  if (own !== undefined) return own;
  if (name === 'assurance-level-change') return content['change_direction'] === 'decrease' ? 'reauthenticate' : 'none';
  return Object.hasOwn(DEFAULTS, name) ? DEFAULTS[name]! : 'none';
}

/** What a subject means here: targets of which the first that finds a session counts; undefined: nothing is known. */
export type Meaning = readonly Omit<ProviderTarget, 'until'>[] | undefined;

/**
 * Whom a subject means, where it has `iss` and `sub`, or the id of a session. `issuers`: those of whose users the
 * provider may tell; the first is its own. Other members, such as a device, are ignored: rather too much ends.
 */
export function meaningOf(subject: ProviderSubject, issuers: readonly string[]): Meaning {
  const format = formatOf(subject);
  if (format !== undefined && format !== 'complex') return simpleMeaning(subject, format, issuers);
  const user = memberOf(subject, 'user', issuers);
  const [session] = memberOf(subject, 'session', issuers) ?? [];
  const { iss, sub } = user?.[0] ?? {};
  if (subject['user'] !== undefined && iss === undefined) return undefined;
  if (session?.sid === undefined) return user;
  // All members hold: it may have ended before, or be one of another application.
  return [iss === undefined ? session : { iss, sub, sid: session.sid }];
}

function memberOf(subject: ProviderSubject, member: string, issuers: readonly string[]): Meaning {
  const value = subject[member];
  return isObject(value) ? simpleMeaning(value, formatOf(value), issuers) : undefined;
}

/** Older transmitters write `subject_type: 'iss-sub'`. */
function formatOf(subject: ProviderSubject): string | undefined {
  const format = subject['format'] ?? subject['subject_type'];
  return typeof format === 'string' ? format.replaceAll('-', '_') : undefined;
}

function simpleMeaning(subject: ProviderSubject, format: string | undefined, issuers: readonly string[]): Meaning {
  const { iss, sub, id } = subject;
  if (format === 'iss_sub' || format === 'id_token_claims')
    return isName(iss) && isName(sub) && issuers.includes(iss) ? [{ iss, sub }] : undefined;
  // What the provider calls a session, or else a user: it gives neither the name of the other.
  if (format === 'opaque' && isName(id))
    return [
      { iss: issuers[0]!, sid: id },
      { iss: issuers[0]!, sub: id },
    ];
  return undefined;
}
