import type { SessionRecord } from './session-record.js';
import type { ReadonlySession } from './session.js';

/** The client that created a session, or signed in to it. The client chose what it says of itself: do not trust it. */
export interface SessionDevice {
  /** The beginning of its address, or what the option `devices` says; undefined when it is not recorded. */
  readonly address?: string;
  /** A shortened User-Agent header; undefined when it is not recorded. */
  readonly userAgent?: string;
}

/** What an index knows of a live session without loading its attributes. */
export interface SessionInfo extends Pick<
  ReadonlySession,
  'id' | 'creationTime' | 'authenticatedAt' | 'lastAccessedTime' | 'maxInactiveInterval'
> {
  /** Milliseconds until the session expires unless it is used; undefined: never. */
  readonly timeToLive: number | undefined;
  /** The client of the session; undefined unless the option `devices` is set. */
  readonly device: SessionDevice | undefined;
}

/** What a record says of its session. */
export function toSessionInfo(record: Omit<SessionRecord, 'attributes' | 'absoluteTimeout'>): SessionInfo {
  const { id, creationTime, authenticatedAt, lastAccessedTime, maxInactiveInterval, timeToLive, device } = record;
  const times = { creationTime, authenticatedAt, lastAccessedTime, maxInactiveInterval, timeToLive };
  return { id, ...times, device: device === undefined ? undefined : readDevice(device) };
}

/** By what an index sorts sessions: when somebody signed in, or else when the session was created. */
export function signInTimeOf({
  authenticatedAt,
  creationTime,
}: Pick<SessionInfo, 'authenticatedAt' | 'creationTime'>): number {
  return authenticatedAt ?? creationTime;
}

/** The text of a device, as stores keep it. */
export function writeDevice(device: SessionDevice): string {
  return JSON.stringify(device);
}

/** The device in the text that stores keep; undefined for a foreign text. */
export function readDevice(text: string): SessionDevice | undefined {
  try {
    const { address, userAgent } = JSON.parse(text) as Record<keyof SessionDevice, unknown>;
    return {
      ...(typeof address === 'string' ? { address } : {}),
      ...(typeof userAgent === 'string' ? { userAgent } : {}),
    };
  } catch {
    return undefined;
  }
}
