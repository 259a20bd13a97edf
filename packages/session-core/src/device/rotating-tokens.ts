import type { IncomingMessage } from 'node:http';
import { shownError } from '../logging/shown-error.js';
import { WarnOnce } from '../logging/warn-once.js';
import type { SecurityEvents } from '../security-events/security-events.js';
import { PRINCIPAL_ATTRIBUTE, TURN_ATTRIBUTE } from '../session/attribute-names.js';
import type { SessionToken } from '../session/session-token.js';
import type { TrackedSession } from '../session/tracked-session.js';
import { advanced, firstTurns, type TokenTurns, type TurnVerdict, used, verdictOf } from './token-turns.js';

interface RotatingResponse {
  readonly request: IncomingMessage;
  readonly session: {
    readonly existing: TrackedSession | undefined;
    readonly found: { readonly turn?: TurnVerdict | undefined };
    readonly bringsToken: boolean;
    bringTurn(): void;
  };
}

export class RotatingTokens {
  readonly #log = new WarnOnce();
  readonly #responses = new WeakSet<RotatingResponse>();

  constructor(
    private readonly every: number,
    private readonly securityEvents: SecurityEvents,
  ) {}

  check(request: IncomingMessage, session: TrackedSession, { turn }: SessionToken): TurnVerdict {
    const verdict = verdictOf(turnsOf(session), turn, session.loadedAt);
    if (verdict === 'reused') {
      const { id: sessionId, storedPrincipal: principalName } = session;
      this.securityEvents.report('reused-token', { request, sessionId, principalName });
    }
    return verdict;
  }

  /** Before a response: changes the token where it is due. Waits for nothing in most requests, and never fails one. */
  beforeResponse(response: RotatingResponse): Promise<unknown> | undefined {
    const { existing: session, found } = response.session;
    const { turn: verdict } = found;
    if (!session || session.isOver || verdict === undefined || this.#responses.has(response)) return undefined;
    this.#responses.add(response);
    // Who comes with a turn that is over learns no other one, whoever of the two it is.
    if (verdict === 'reused') return undefined;
    const changing = session.storedId === session.id ? this.#take(response, session, verdict) : undefined;
    // Another response may have changed the turn since the load: it must not be set back.
    return changing ?? (response.session.bringsToken ? this.#change(session, (current) => current) : undefined);
  }

  #take(response: RotatingResponse, session: TrackedSession, verdict: TurnVerdict): Promise<unknown> | undefined {
    const turns = turnsOf(session);
    const now = session.loadedAt;
    const isPage = isNavigation(response.request);
    if (verdict === 'former') {
      if (isPage) response.session.bringTurn();
      return undefined;
    }
    if (turns && turns.usedAt === undefined) return this.#change(session, (current) => used(current!, now));
    if (!isPage || !this.#isDue(session, turns)) return undefined;
    response.session.bringTurn();
    return this.#change(session, (current) => (current ? advanced(current, this.every, now) : firstTurns(now)));
  }

  #isDue(session: TrackedSession, turns: TokenTurns | undefined): boolean {
    // Of a bound session, the proof of its browser says more.
    if (typeof session.peekAttribute(PRINCIPAL_ATTRIBUTE) !== 'string' || session.device?.bound) return false;
    const since = turns?.begunAt ?? session.authenticatedAt ?? session.creationTime;
    return session.loadedAt - since >= this.every;
  }

  async #change(
    session: TrackedSession,
    change: (current: TokenTurns | undefined) => TokenTurns | undefined,
  ): Promise<void> {
    try {
      await session.updateOwnAttribute<TokenTurns>(TURN_ATTRIBUTE, change);
    } catch (error) {
      this.#log.warn('turn', `A token was not changed: ${shownError(error)}. This is logged once`);
    }
  }
}

function turnsOf(session: TrackedSession): TokenTurns | undefined {
  return session.peekAttribute(TURN_ATTRIBUTE) as TokenTurns | undefined;
}

/** Whether the response reaches the cookies of the browser, and no page is left with what was before. */
function isNavigation({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
}
