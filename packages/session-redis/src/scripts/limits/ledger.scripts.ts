import type { Redis } from 'ioredis';
import type { SessionKeys } from '../../keys/session-keys.js';
import type { SessionPartitions } from '../../keys/session-partitions.js';
import { defineScripts, loadScripts, type ScriptsByName } from '../define-scripts.js';

/** A place in the ledger of a principal. */
export interface LedgerPlace {
  /** Tells it from the others. */
  readonly field: string;
  /** Another one when somebody has asked for it since then. */
  readonly version: string;
  /** Whether its session may not be stored yet. */
  readonly isOpen: boolean;
  /** Whether other sessions are to end for its session: its sign-in ends them, if it is not given up. */
  readonly makesRoom: boolean;
  /** The ids that its session may have. */
  readonly ids: readonly string[];
}

/** What a session needs a place for. */
export interface ReservationRequest {
  /** The id that the session will have. */
  readonly id: string;
  /** The id that it has now; undefined: it is new. */
  readonly replaced: string | undefined;
  /** How many sessions the principal may have; undefined: the session is one of them already. */
  readonly atMost: number | undefined;
  /** What happens when there would be more. */
  readonly whenReached: 'end-oldest' | 'refuse';
  /** For how many milliseconds it may be stored. */
  readonly duration: number;
}

/** What a sign-in has learned since it asked for its place. */
export interface PlaceFindings {
  /** Places whose sessions are over. */
  readonly over?: readonly LedgerPlace[];
  /** All sessions of the principal with the times of their sign-ins, for a ledger that is not there. */
  readonly sessions?: readonly (readonly [id: string, at: string])[];
}

/**
 * A place for a session. `latest`: until when it may be stored, in epoch milliseconds. `wasKnown`: whether the ledger
 * had its id before. `full`: it may be stored when the sessions of `ending` have ended, and `missing` more places have
 * become free, which other sign-ins may bring about; or when one of `others` turns out to be over.
 */
export type Reservation =
  | { readonly word: 'unknown' }
  | { readonly word: 'room'; readonly latest: number; readonly wasKnown: boolean }
  | {
      readonly word: 'full';
      readonly latest: number;
      readonly wasKnown: boolean;
      readonly missing: number;
      readonly ending: LedgerPlace[];
      readonly others: LedgerPlace[];
    };

type ListedPlace = [field: string, version: string, isOpen: number, makesRoom: number, ...ids: string[]];
type ReserveReply =
  | ['unknown']
  | ['room', latest: number, known: number]
  | ['full', latest: number, known: number, missing: number, ending: ListedPlace[], others: ListedPlace[]];

/** What has become of a session that was to get a place. */
export interface SettledPlace {
  readonly id: string;
  /** The id that it had before; undefined: it is new. */
  readonly replaced: string | undefined;
  /** Of the last reply of `reserve()`. */
  readonly latest: number;
  readonly isStored: boolean;
  /** The places whose sessions have ended for it. */
  readonly ended?: readonly LedgerPlace[];
}

/** The result of settling a place. */
export type SettlePlaceReply = 'done';

/**
 * What has become of a session. `over`: also when it has another id by now; `absent`: it is not stored yet, or was
 * removed, or belongs to somebody else.
 */
export type PlacedSession = 'live' | 'over' | 'absent';

// Milliseconds after the last sign-in of a principal. After that, the indexes are asked again.
const KEPT = 7 * 24 * 3600 * 1000;

const SOURCES = loadScripts('limits', {
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

  /** Takes a place, or looks again whether there is room at the place that the session has. */
  async reserve(
    principal: string,
    request: ReservationRequest,
    { over = [], sessions }: PlaceFindings = {},
  ): Promise<Reservation> {
    const { id, replaced = '', atMost = '', whenReached, duration } = request;
    const args: (string | number)[] = [
      id,
      replaced,
      atMost,
      whenReached,
      duration,
      KEPT,
      sessions ? 1 : 0,
      over.length,
      ...namesOf(over),
      ...(sessions ?? []).flat(),
    ];
    const reply = (await this.#run('reservePlace', principal, args)) as ReserveReply;
    if (reply[0] === 'unknown') return { word: 'unknown' };
    const wasKnown = reply[2] === 1;
    if (reply[0] === 'room') return { word: 'room', latest: reply[1], wasKnown };
    const [word, latest, , missing, ending, others] = reply;
    return { word, latest, wasKnown, missing, ending: ending.map(toPlace), others: others.map(toPlace) };
  }

  /** Ends what `reserve()` has begun. */
  async settle(
    principal: string,
    { id, replaced = '', latest, isStored, ended = [] }: SettledPlace,
  ): Promise<SettlePlaceReply> {
    const args = [id, replaced, latest, isStored ? 1 : 0, ...namesOf(ended)];
    return (await this.#run('settlePlace', principal, args)) as SettlePlaceReply;
  }

  /** What has become of sessions of a principal, whose index this is. */
  async find({ prefix, epoch }: SessionKeys, index: string, ids: readonly string[]): Promise<PlacedSession[]> {
    return (await this.#scripts.findSessions(2, [index, epoch], [prefix, ...ids])) as PlacedSession[];
  }

  #run(script: keyof typeof SOURCES, principal: string, args: (string | number)[]): Promise<unknown> {
    return this.#scripts[script](1, this.partitions.of(principal).ledger(principal), args);
  }
}

function toPlace([field, version, isOpen, makesRoom, ...ids]: ListedPlace): LedgerPlace {
  return { field, version, isOpen: isOpen === 1, makesRoom: makesRoom === 1, ids };
}

function namesOf(places: readonly LedgerPlace[]): string[] {
  return places.flatMap(({ field, version }) => [field, version]);
}
