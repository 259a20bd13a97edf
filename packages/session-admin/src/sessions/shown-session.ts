import type { SessionInfo } from '@nest-session/core';
import { beganAt, type InspectedSession, isOwnAttribute } from '@nest-session/core/internal';
import { toSessionInfo } from '@nest-session/core/store';
import { shownInstant } from '../http/shown-times.js';
import { type ShownValue, shownValue } from '../http/shown-value.js';

/** A session as the list shows it. The first six are those of Spring's actuator. */
export interface ShownSession {
  readonly id: string;
  readonly attributeNames: readonly string[];
  readonly creationTime: string | null;
  readonly lastAccessedTime: string | null;
  /** Seconds; negative: none. */
  readonly maxInactiveInterval: number;
  readonly expired: boolean;
  /** Null where nobody is signed in. */
  readonly principalName: string | null;
  /** When somebody signed in. */
  readonly authenticatedTime: string | null;
  /** When it expires unless it is used; null: never. */
  readonly expirationTime: string | null;
  /** When it expires even if it is used; null: never. */
  readonly absoluteExpirationTime: string | null;
  readonly device: { readonly address: string | null; readonly userAgent: string | null } | null;
  /** Bytes of the names and the texts of its attributes. */
  readonly size: number;
  /** Whether it is the session of the request. */
  readonly isOwn: boolean;
}

/** An attribute of a session. */
export interface ShownAttribute extends ShownValue {
  readonly name: string;
  /** Bytes of its name and its text. */
  readonly size: number;
}

/** A session on its own. */
export interface ShownSessionDetails extends ShownSession {
  readonly attributes: readonly ShownAttribute[];
}

/** How ids are shown. */
export interface ShowingContext {
  /** The id of the session of the request, as its store knows it. */
  readonly ownId: string | undefined;
  readonly shownId: (id: string) => string;
}

/** A session without any value. */
export function showSession({ record, session }: InspectedSession, context: ShowingContext): ShownSession {
  const { id, creationTime, lastAccessedTime, maxInactiveInterval, authenticatedAt, device } = toSessionInfo(record);
  return {
    id: context.shownId(id),
    attributeNames: namesOf(session),
    creationTime: shownInstant(creationTime),
    lastAccessedTime: shownInstant(lastAccessedTime),
    maxInactiveInterval,
    // Stores find no others.
    expired: false,
    principalName: readablePrincipal({ session }) ?? null,
    authenticatedTime: shownInstant(authenticatedAt),
    expirationTime: shownInstant(expiryOf(record)),
    absoluteExpirationTime: shownInstant(absoluteExpiryOf(record)),
    device: showDevice(device),
    size: attributesOf({ record, session }).reduce((sum, { size }) => sum + size, 0),
    isOwn: id === context.ownId,
  };
}

/** The attributes, with the values that the application shows. */
export function attributesOf(
  { record, session }: InspectedSession,
  values?: (name: string, value: unknown) => unknown,
): ShownAttribute[] {
  const names = namesOf(session);
  return [...record.attributes]
    .filter(([name]) => names.includes(name))
    .map(([name, text]) => ({
      name,
      size: Buffer.byteLength(name) + (typeof text === 'string' ? Buffer.byteLength(text) : text.bytes),
      ...shownValue(values && (() => values(name, session.getAttribute<unknown>(name)))),
    }));
}

/** Without those of the library: the principal is shown as such, and a CSRF token is for nobody. */
function namesOf({ attributeNames }: InspectedSession['session']): readonly string[] {
  return attributeNames.filter((name) => !isOwnAttribute(name));
}

/** Undefined where nobody is signed in, or where the name cannot be read, as without its key. */
export function readablePrincipal({ session }: Pick<InspectedSession, 'session'>): string | undefined {
  try {
    return session.principalName;
  } catch {
    return undefined;
  }
}

/** Infinity for never. */
function expiryOf(record: InspectedSession['record']): number {
  const { lastAccessedTime, maxInactiveInterval } = record;
  return Math.min(endAfter(maxInactiveInterval, lastAccessedTime), absoluteExpiryOf(record));
}

function absoluteExpiryOf(record: InspectedSession['record']): number {
  return endAfter(record.absoluteTimeout, beganAt(record));
}

function endAfter(seconds: number, since: number): number {
  return seconds < 0 ? Infinity : since + seconds * 1000;
}

function showDevice(device: SessionInfo['device']): ShownSession['device'] {
  return device ? { address: device.address ?? null, userAgent: device.userAgent ?? null } : null;
}
