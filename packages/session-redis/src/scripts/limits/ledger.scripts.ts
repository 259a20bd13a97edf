import { defineScripts, loadScripts, type ScriptsByName } from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import type { SessionKeys } from '../../keys/session-keys.js';
import type { SessionPartitions } from '../../keys/session-partitions.js';
import { SCRIPT_SOURCES } from '../script-sources.js';

/** A place in the ledger of a principal. */
export interface LedgerPlace {
  /** The id of its session. */
  readonly id: string;
  /** When it was taken. Another time when somebody has asked for it since then. */
  readonly at: string;
}

/** What a session needs a place for. */
export interface ReservationRequest {
  /** The id that the session will have. */
  readonly id: string;
  /** The id that it has now; undefined: it is new. */
  readonly replaced?: string | undefined;
  /** How many sessions the principal may have; undefined: the session is one of them already. */
  readonly atMost?: number | undefined;
  /** What happens when there would be more. */
  readonly whenReached: 'end-oldest' | 'refuse';
  /** For how many milliseconds it may be stored. */
  readonly duration: number;
  /** A ledger that was made before, in epoch milliseconds, may lack sessions: it is not known. @default any is known */
  readonly since?: string | undefined;
}

/** What a sign-in has learned since it asked for its place. */
export interface PlaceFindings {
  /** Places whose sessions are over. */
  readonly over?: readonly LedgerPlace[];
  /** All sessions of the principal with the times of their sign-ins, for a ledger that is not there. */
  readonly sessions?: readonly (readonly [id: string, at: string])[];
}

/**
 * `room`: a place for a session, which may be stored until `latest`, in epoch milliseconds, once the sessions of
 * `ending` have ended. `wasKnown`: whether the ledger had its id before. Or why it has none: it is `refused`, or other
 * requests are about to store as many sessions as there may be (`busy`), or there is no ledger that has all sessions
 * (`unknown`). Less has to end when one of `others` turns out to be over.
 */
export interface Reservation {
  readonly word: ReserveReply[0];
  readonly latest: number;
  readonly wasKnown: boolean;
  readonly ending: readonly LedgerPlace[];
  readonly others: readonly LedgerPlace[];
}

type ReserveReply =
  | ['unknown' | 'busy']
  | ['refused', others: string[]]
  | ['room', latest: number, known: number, ending: string[], others: string[]];

/** The result of settling a place. */
export type SettlePlaceReply = 'done';

// Milliseconds after the last sign-in of a principal. After that, the indexes are asked again.
const KEPT = 7 * 24 * 3600 * 1000;

const SOURCES = loadScripts(SCRIPT_SOURCES, 'limits', {
  reservePlace: 'reserve-place',
  settlePlace: 'settle-place',
  findSessions: 'find-sessions',
});

/** The scripts for the ledgers of principals. Each is one typed function, and each call is for one partition. */
export class LedgerScripts {
  readonly #scripts: ScriptsByName<keyof typeof SOURCES>;

  constructor(
    client: Redis,
    private readonly partitions: SessionPartitions,
  ) {
    this.#scripts = defineScripts(client, SOURCES);
  }

  /** Takes a place, or looks again what must end for the session that has it. */
  async reserve(
    principal: string,
    request: ReservationRequest,
    { over = [], sessions }: PlaceFindings = {},
  ): Promise<Reservation> {
    const { id, replaced = '', atMost = '', whenReached, duration, since = 0 } = request;
    const args = [id, replaced, atMost, whenReached, duration, KEPT, sessions ? 1 : 0, since, over.length];
    args.push(...over.flatMap((place) => [place.id, place.at]), ...(sessions ?? []).flat());
    const reply = (await this.#run('reservePlace', principal, args)) as ReserveReply;
    const none: Reservation = { word: reply[0], latest: 0, wasKnown: false, ending: [], others: [] };
    if (reply[0] === 'refused') return { ...none, others: toPlaces(reply[1]) };
    if (reply[0] !== 'room') return none;
    const [word, latest, known, ending, others] = reply;
    return { word, latest, wasKnown: known === 1, ending: toPlaces(ending), others: toPlaces(others) };
  }

  /**
   * Ends what `reserve()` has begun. `over`: the ids of the sessions that have ended for this one, and the one that it
   * had before.
   */
  async settle(
    principal: string,
    id: string,
    isStored: boolean,
    over: readonly string[] = [],
  ): Promise<SettlePlaceReply> {
    return (await this.#run('settlePlace', principal, [id, isStored ? 1 : 0, ...over])) as SettlePlaceReply;
  }

  /** Returns the ids of live sessions of a principal, whose index this is. */
  async find({ prefix, epoch }: SessionKeys, index: string, ids: readonly string[]): Promise<string[]> {
    return (await this.#scripts.findSessions(2, [index, epoch], [prefix, ...ids])) as string[];
  }

  #run(script: keyof typeof SOURCES, principal: string, args: (string | number)[]): Promise<unknown> {
    return this.#scripts[script](1, this.partitions.of(principal).ledger(principal), args);
  }
}

function toPlaces(reply: readonly string[]): LedgerPlace[] {
  return Array.from({ length: reply.length / 2 }, (_, i) => ({ id: reply[2 * i]!, at: reply[2 * i + 1]! }));
}
