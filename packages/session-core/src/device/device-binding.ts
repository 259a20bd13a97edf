import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { BoundDevice } from '../session/session.js';
import { algorithmOf, type DeviceProof, type PublicKey } from './device-jwt.js';

/**
 * What a session knows of the browser that it is bound to: the value of one attribute, so that it is written in one
 * step with the session, moves with its id and ends with it. An index finds the session by `id`.
 */
export interface DeviceBinding {
  /** What the browser calls the session, whatever id it has here. Another sign-in makes another one. */
  readonly id: string;
  /** What challenges, handles and bound cookies are proven by. */
  readonly secret: string;
  readonly offers: number;
  /** When the first browser that may register came. */
  readonly begunAt: number;
  /** When it was told the last time: epoch ms by the clock of the store, like all times here. */
  readonly offeredAt: number;
  readonly key?: BoundKey;
}

interface BoundKey {
  readonly publicKey: PublicKey;
  readonly since: number;
  readonly offer: number;
  /** Whether the browser was answered, as far as can be known here: the store may have failed meanwhile. */
  readonly isConfirmed: boolean;
  readonly answered: number;
  readonly answeredAt: number;
}

export const DEVICE_INDEX = 'nest-session.device';

export function bindingIn(value: unknown): DeviceBinding | undefined {
  return typeof value === 'object' && value !== null ? (value as DeviceBinding) : undefined;
}

/** `proven`: the id of the binding that a request has proven, which may be the first one to do so. */
export function deviceIn(value: unknown, proven?: string): BoundDevice | undefined {
  const { key, id } = bindingIn(value) ?? {};
  return key && { bound: key.isConfirmed || id === proven, since: key.since, algorithm: algorithmOf(key.publicKey)! };
}

const MINUTE = 60_000;
/** Milliseconds for which a browser may register. */
const OFFERED_FOR = 5 * MINUTE;
/** Milliseconds between two offers: each costs the browser one of 6 signatures in 9 minutes. */
const BETWEEN_OFFERS = MINUTE;
/** Milliseconds in which there are offers: whoever steals the cookie of a browser that cannot bind could register. */
const OFFERS_END = 10 * MINUTE;
const MOST_OFFERS = 5;
/** Milliseconds for which a challenge may be answered: longer than the longest pause between two refreshes. */
const CHALLENGE_LIFE = 75 * MINUTE;
/** Milliseconds for which what a browser sent counts again, or an answer to an earlier challenge: replies get lost. */
const REPEATABLE = MINUTE;
/** Milliseconds by which the clock of an instance may differ from that of the store. */
const CLOCK_ROOM = 30_000;
/** Milliseconds after a registration for which requests may be under way that left before. */
const UNDER_WAY = MINUTE;

export function newBinding(now: number): DeviceBinding {
  const [id, secret] = [0, 1].map(() => randomBytes(32).toString('base64url')) as [string, string];
  return { id, secret, offers: 1, begunAt: now, offeredAt: now };
}

/**
 * Whether the browser may be told to register once more: it has not, or was not answered that it has. Otherwise,
 * whoever has copied the cookie could replace its key.
 */
export function mayOfferAgain({ key, offers, begunAt, offeredAt }: DeviceBinding, now: number): boolean {
  if (key && (key.isConfirmed || now - key.since > OFFERED_FOR)) return false;
  return offers < MOST_OFFERS && now - offeredAt >= BETWEEN_OFFERS && now - begunAt <= OFFERS_END;
}

export function offeredAgain(binding: DeviceBinding, now: number): DeviceBinding {
  return { ...binding, offers: binding.offers + 1, offeredAt: now };
}

/** What the path of a registration carries: no cookie comes with it when another site has caused the sign-in. */
export function handleOf(binding: DeviceBinding): string {
  return `${binding.id}.${mac(binding, 'register', binding.offers)}`;
}

export function bindingIdIn(handle: string): string | undefined {
  return /^([\w-]{43})\.[\w-]{43}$/.exec(handle)?.[1];
}

export function registrationChallenge(binding: DeviceBinding): string {
  return mac(binding, 'registration', binding.offers);
}

type RegistrationRefusal = 'unknown-handle' | 'foreign-challenge' | 'second-key';

/**
 * The binding with the key of a browser; the same when it has that key already, for a while: a recorded request must
 * not get a bound cookie for ever. `proof` is signed by its key. A key that is not confirmed
 * gives way to one that a later offer brought.
 */
export function registered(
  binding: DeviceBinding,
  handle: string,
  { publicKey, challenge }: DeviceProof & { readonly publicKey: PublicKey },
  now: number,
): DeviceBinding | RegistrationRefusal {
  const { key, offers, offeredAt } = binding;
  if (now - offeredAt > OFFERED_FOR + CLOCK_ROOM || !isSame(handle, handleOf(binding))) return 'unknown-handle';
  if (!isSame(challenge, registrationChallenge(binding))) return 'foreign-challenge';
  if (key && JSON.stringify(key.publicKey) === JSON.stringify(publicKey))
    return key.isConfirmed && now - key.since > REPEATABLE ? 'unknown-handle' : binding;
  if (key && (key.isConfirmed || key.offer === offers)) return 'second-key';
  const unanswered = { isConfirmed: false, answered: 0, answeredAt: 0 };
  return { ...binding, key: { publicKey, since: now, offer: offers, ...unanswered } };
}

/** A challenge for the next proof. Nothing of it is stored. */
export function challengeAt(binding: DeviceBinding, now: number): string {
  const time = now.toString(36);
  return `${time}.${mac(binding, 'challenge', time)}`;
}

export function timeOfChallenge(binding: DeviceBinding, challenge: string): number | undefined {
  return provenTime(binding, 'challenge', challenge);
}

/** Undefined for a challenge too old, or older than one that was answered: a recorded proof must open nothing. */
export function refreshed(binding: DeviceBinding, challengedAt: number, now: number): DeviceBinding | undefined {
  const { key } = binding;
  if (!key || challengedAt < now - CHALLENGE_LIFE) return undefined;
  if (challengedAt > key.answered)
    return { ...binding, key: { ...key, isConfirmed: true, answered: challengedAt, answeredAt: now } };
  // The clock of the store may have been set back: no challenge of before would be the latest for a while.
  const [answered, answeredAt] = [Math.min(key.answered, now), Math.min(key.answeredAt, now)];
  if (challengedAt < answered - REPEATABLE || now - answeredAt > REPEATABLE) return undefined;
  return confirmed(binding);
}

export function confirmed(binding: DeviceBinding): DeviceBinding {
  return binding.key?.isConfirmed === false ? { ...binding, key: { ...binding.key, isConfirmed: true } } : binding;
}

export function boundValue(binding: DeviceBinding, end: number): string {
  const time = end.toString(36);
  return `${time}.${mac(binding, cookieOf(binding), time)}`;
}

/**
 * `unbound`: no browser is bound; `proven`: a cookie counts; `under-way`: none does, but the request may have left
 * before the browser knew its cookie; `missing`: none does; `forged`: there is one that this session never had.
 */
export type DeviceEvidence = 'unbound' | 'proven' | 'under-way' | 'missing' | 'forged';

/** `values`: those of all bound cookies, because others of another path may come first. */
export function evidenceIn(binding: DeviceBinding, values: readonly string[], now: number): DeviceEvidence {
  const { key } = binding;
  if (!key) return 'unbound';
  const ends = values.map((value) => provenTime(binding, cookieOf(binding), value));
  if (ends.some((end) => end !== undefined && now <= end + CLOCK_ROOM)) return 'proven';
  // The reply to the registration may have been lost, and with it the cookie: for as long as another offer may follow.
  if (!key.isConfirmed && now - key.since <= OFFERED_FOR) return 'unbound';
  if (now - key.since < UNDER_WAY) return 'under-way';
  return ends.includes(undefined) ? 'forged' : 'missing';
}

function provenTime(binding: DeviceBinding, purpose: Purpose, text: string): number | undefined {
  const [, time] = /^([\da-z]{1,10})\.[\w-]{43}$/.exec(text) ?? [];
  if (time === undefined || !isSame(text, `${time}.${mac(binding, purpose, time)}`)) return undefined;
  return Number.parseInt(time, 36);
}

type Purpose = 'register' | 'registration' | 'challenge' | `cookie ${number}`;

/** A bound cookie of a key that gave way to another one proves nothing. */
function cookieOf({ key }: DeviceBinding): Purpose {
  return `cookie ${key?.offer ?? 0}`;
}

/** What one of them is made of opens nothing as another, nor for another session. */
function mac({ id, secret }: DeviceBinding, purpose: Purpose, text: string | number): string {
  return createHmac('sha256', secret).update(`nest-session device ${purpose} ${id} ${text}`).digest('base64url');
}

function isSame(presented: string, expected: string): boolean {
  const [one, other] = [Buffer.from(presented), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}
