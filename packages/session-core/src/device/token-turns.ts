import { createHmac, randomBytes } from 'node:crypto';

/**
 * The turns of the token of a session, which changes by time: the value of one attribute. Turn 0 is the token as it was
 * drawn, the others have a text behind it. Whoever copied the cookies of a browser has one turn, and the browser
 * another one soon: then a former turn comes although the present one is in use, which is what two holders look like.
 */
export interface TokenTurns {
  readonly secret: string;
  readonly turn: number;
  /** When it began: epoch ms by the clock of the store, like all times here. */
  readonly begunAt: number;
  /** When a request came with it for the first time; unset: none has, so its response may have been lost. */
  readonly usedAt?: number;
}

/** Milliseconds in which a former turn is nothing to report: requests of other tabs, or on a slow line, left before. */
const GRACE = 60_000;

export function firstTurns(now: number): TokenTurns {
  return { secret: randomBytes(32).toString('base64url'), turn: 1, begunAt: now };
}

export function turnText({ secret, turn }: TokenTurns): string {
  const mac = createHmac('sha256', secret).update(`nest-session turn ${turn}`).digest('base64url');
  return `${turn.toString(36)}-${mac.slice(0, 22)}`;
}

/** What the cookie of a session whose attribute has this value has behind its token; empty for nothing. */
export function turnTextIn(value: unknown): string {
  return value === undefined ? '' : turnText(value as TokenTurns);
}

/**
 * `former`: the turn before, whose response with the present one may have been lost, or came less than 60 s ago;
 * `reused`: an earlier one, or what no turn ever was.
 */
export type TurnVerdict = 'present' | 'former' | 'reused';

/** `turns`: undefined while the token has not changed. */
export function verdictOf(turns: TokenTurns | undefined, text: string, now: number): TurnVerdict {
  if (!turns) return text === '' ? 'present' : 'reused';
  if (text === turnText(turns)) return 'present';
  const before = turns.turn - 1;
  const isBefore = text === (before === 0 ? '' : turnText({ ...turns, turn: before }));
  return isBefore && (turns.usedAt === undefined || now - turns.usedAt <= GRACE) ? 'former' : 'reused';
}

export function used(turns: TokenTurns, now: number): TokenTurns {
  return turns.usedAt === undefined ? { ...turns, usedAt: now } : turns;
}

export function advanced(turns: TokenTurns, every: number, now: number): TokenTurns {
  if (turns.usedAt === undefined || now - turns.begunAt < every) return turns;
  return { secret: turns.secret, turn: turns.turn + 1, begunAt: now };
}
