import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { PRINCIPAL_NAME_INDEX_NAME, SessionStoreError } from '@nest-session/core';
import { TurnQueue } from '@nest-session/core/internal';
import type { CreateSession, SessionLimit, UpdateSession, WriteReply } from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { REDIS_SESSION_OPTIONS, REQUEST_SESSION_SCRIPTS } from '../configuration/redis-session.tokens.js';
import { RequestConnection } from '../connection/request.connection.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import {
  type LedgerPlace,
  LedgerScripts,
  type PlacedSession,
  type SettledPlace,
} from '../scripts/limits/ledger.scripts.js';
import { type ScriptsOn, scriptsOn } from '../scripts/define-scripts.js';
import type { Room, StoreReply } from '../scripts/session/session-arguments.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { type KnownReservation, PlaceRequest } from './place-request.js';

/** A change that lists a session under a principal, or changes the id of one that is. */
export type LimitedChange = (CreateSession | UpdateSession) & { readonly limit: SessionLimit };

/** Stores the session of a sign-in. */
type Store = (room?: Room) => Promise<StoreReply<WriteReply>>;

/** How long a session may take to be stored once it has a place, in command timeouts: each step takes one at most. */
const STEPS = 5;

// Milliseconds. Sign-ins of one principal may overlap: that only costs more looks.
const LONGEST_TURN = 100;

// Milliseconds between two looks at a session that another request is about to store.
const SHORTEST_WAIT = 5;
const LONGEST_WAIT = 50;

/**
 * Limits the sessions of a principal where these are in several partitions, so that no script sees them all; with one
 * partition, scripts/library/limit-in-one-partition.lua does. The ledger of a principal has a place for each of its
 * sessions, and no more places that stay than the limit allows. A sign-in
 *
 * 1. takes a place. When there is none left, the places that were taken first are to end for it, each for one sign-in
 * only;
 * 2. then looks which of the sessions are over, and uses the place of one of these instead;
 * 3. else ends the sessions of the places that are to end for it;
 * 4. stores the session, within a limited time.
 *
 * So there are never more sessions than the limit allows, whatever fails: a place whose session was never stored is
 * given up when its time has passed.
 */
@Injectable()
export class LimitAcrossPartitions {
  readonly #scripts: ScriptsOn<LedgerScripts>;
  /** So that the sign-ins of one process need not look whether another one has finished. */
  readonly #turns = new TurnQueue<StoreReply<WriteReply>>(LONGEST_TURN);
  /** Milliseconds for which a session that has a place may be stored. */
  readonly #duration: number;

  constructor(
    @Inject(RequestConnection) private readonly connection: RequestConnection,
    @Inject(REQUEST_SESSION_SCRIPTS) private readonly sessions: ScriptsOn<SessionScripts>,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(REDIS_SESSION_OPTIONS) { commandTimeout }: Pick<ResolvedRedisSessionOptions, 'commandTimeout'>,
  ) {
    this.#scripts = scriptsOn((client) => new LedgerScripts(client, partitions));
    this.#duration = STEPS * commandTimeout;
  }

  /** Makes room for the session of a change, and then stores it by `store`. */
  write(change: LimitedChange, store: Store): Promise<StoreReply<WriteReply>> {
    // A session that ends at once is never one of them.
    if (change.maxInactiveInterval === 0 || change.absoluteTimeout === 0) return store();
    const request = new PlaceRequest(change);
    return this.#turns.run(request.principal, () => this.#write(request, store));
  }

  async #write(request: PlaceRequest, store: Store): Promise<StoreReply<WriteReply>> {
    const giveUpAt = this.now() + this.#duration;
    const place = await this.#reserve(request);
    let ended: readonly LedgerPlace[] | 'refused' | 'gone';
    try {
      ended = await this.#makeRoom(request, place, giveUpAt);
    } catch (error) {
      await this.#release(request, 'unknown');
      throw error;
    }
    if (typeof ended === 'string') {
      await this.#release(request, ended);
      return { outcome: ended };
    }
    const reply = await store({ until: request.latest, principal: request.limit.principal });
    const { outcome } = reply;
    if (outcome === 'gone' || outcome === 'full' || outcome === 'unplaced') await this.#release(request, outcome);
    // Not awaited: until then, the place only seems to be open.
    if (outcome === 'created' || outcome === 'saved') void this.#settle(request, { isStored: true, ended });
    if (outcome === 'late')
      throw new SessionStoreError(`The sign-in took longer than ${this.#duration} ms, so it was not stored`);
    return reply;
  }

  /** Gives a place to a session that is taken over, whatever the limit is: its principal has signed in elsewhere. */
  async enter(id: string, principal: string): Promise<void> {
    if (this.partitions.count === 1) return;
    await this.#reserve(this.#entrance(id, principal));
  }

  /** Gives up the place of a session that was not taken over after all. */
  async leave(id: string, principal: string): Promise<void> {
    if (this.partitions.count > 1) await this.#release(this.#entrance(id, principal), 'gone');
  }

  #entrance(id: string, principal: string): PlaceRequest {
    const limit = { principal, atMost: 0, whenReached: 'end-oldest' } as const;
    return new PlaceRequest({ kind: 'create', id, limit, indexes: new Map() });
  }

  async #reserve(request: PlaceRequest, over: readonly LedgerPlace[] = []): Promise<KnownReservation> {
    const reservation = request.reservation(this.#duration);
    const first = await this.#ask((scripts) => scripts.reserve(request.principal, reservation, { over }), request);
    if (first.word !== 'unknown') return request.reserved(first);
    const sessions = await this.#sessionsOf(request);
    const second = await this.#ask((scripts) => scripts.reserve(request.principal, reservation, { sessions }), request);
    if (second.word === 'unknown') throw new SessionStoreError('The ledger of a principal cannot be made');
    return request.reserved(second);
  }

  /** All that the indexes list, with the times of the sign-ins. */
  async #sessionsOf(request: PlaceRequest): Promise<[id: string, at: string][]> {
    const replies = await Promise.all(
      this.partitions.all.map((keys) => {
        const index = request.index(keys);
        return this.connection.run((client) => client.zrange(index, '0', '-1', 'WITHSCORES'), index);
      }),
    );
    return replies.flatMap((reply) => pairsOf(reply));
  }

  /** Ends what must end, unless others are over. Returns the places of what has ended, or why there is no room. */
  async #makeRoom(
    request: PlaceRequest,
    taken: KnownReservation,
    giveUpAt: number,
  ): Promise<readonly LedgerPlace[] | 'refused' | 'gone'> {
    const known = new Map<string, PlacedSession>();
    const isOver = (each: LedgerPlace) => known.get(keyOf(each)) === 'over';
    let place = taken;
    for (let wait = SHORTEST_WAIT; place.word === 'full';) {
      const { missing, ending, others } = place;
      const all = [...ending, ...others];
      const unknown = all.filter((each) => !isOver(each));
      const [isGone] = await Promise.all([this.#isGone(request), this.#find(request, unknown, known)]);
      // What was to end for a session that is over stays, so its place is given up, and the room counted again.
      const hasEnded = () => missing === 0 && ending.every((each) => isOver(each) && !each.makesRoom);
      // The place of what is over is given up first: it may be that less has to end.
      if (!hasEnded() && !all.some(isOver)) {
        if (request.limit.whenReached === 'refuse') return 'refused';
        if (isGone) return 'gone';
        const left = ending.filter((each) => !isOver(each));
        await Promise.all(left.map((each) => this.#end(request, each, known)));
        if (!hasEnded()) wait = await this.#pause(wait, giveUpAt);
      }
      if (hasEnded()) return ending;
      place = await this.#reserve(request, all.filter(isOver));
    }
    return [];
  }

  /**
   * Waits for another request that is about to store a session which must end. Or has failed to, and gives up its
   * place.
   */
  async #pause(wait: number, giveUpAt: number): Promise<number> {
    if (this.now() > giveUpAt) throw new SessionStoreError('Another sign-in of the principal has not finished');
    await this.sleep(wait);
    return Math.min(2 * wait, LONGEST_WAIT);
  }

  /** Monotonic time in milliseconds. */
  protected now(): number {
    return performance.now();
  }

  /** Waits for up to so many milliseconds. */
  protected async sleep(ms: number): Promise<void> {
    await sleep(ms * Math.random());
  }

  /** Whether the session that signs in is over, or may not be created, so that nothing must end for it. */
  async #isGone({ replaced, presentedIds }: PlaceRequest): Promise<boolean> {
    if (replaced !== undefined) return !(await this.#isThere(this.partitions.of(replaced).shadow(replaced)));
    // It is not created where the client presents a token that was just replaced.
    const marks = presentedIds.map((id) => this.#isThere(this.partitions.of(id).forwardingMark(id)));
    return (await Promise.all(marks)).includes(true);
  }

  async #isThere(key: string): Promise<boolean> {
    return (await this.connection.run((client) => client.exists(key), key)) > 0;
  }

  /** Ends the session of a place if it is live, whichever id it has. */
  async #end(request: PlaceRequest, place: LedgerPlace, known: Map<string, PlacedSession>): Promise<void> {
    if (known.get(keyOf(place)) !== 'live') return;
    const listed = { indexName: PRINCIPAL_NAME_INDEX_NAME, value: request.limit.principal };
    const end = (id: string) =>
      this.connection.write(
        (client) => this.sessions(client).delete(id, { listed, reason: 'limit' }),
        this.partitions.of(id).prefix,
      );
    const replies = await Promise.all(place.ids.map(end));
    if (replies.some(({ outcome }) => outcome !== 'gone')) known.set(keyOf(place), 'over');
  }

  /** Notes what has become of the sessions of places, by keyOf(). `absent`: it may still be stored. */
  async #find(request: PlaceRequest, places: readonly LedgerPlace[], known: Map<string, PlacedSession>): Promise<void> {
    const words = new Map<string, PlacedSession>();
    await Promise.all(
      this.partitions.grouped(places.flatMap(({ ids }) => ids)).map(async ([keys, ids]) => {
        const look = (client: Redis) => this.#scripts(client).find(keys, request.index(keys), ids);
        const found = await this.connection.run(look, keys.prefix);
        for (const [i, id] of ids.entries()) words.set(id, found[i]!);
      }),
    );
    for (const place of places) known.set(keyOf(place), stateOf(place, words));
  }

  /**
   * Gives up the place of a session that was not stored. Where that fails, the place is free when its time has passed.
   */
  async #release(request: PlaceRequest, outcome: 'gone' | 'refused' | 'full' | 'unplaced' | 'unknown'): Promise<void> {
    // The place may be that of the session as it is, or as an attempt has stored it whose reply was lost.
    const mayBeThere = request.replaced === request.id ? outcome !== 'gone' : request.wasKnown;
    if (mayBeThere) return;
    await this.#settle(request, { isStored: false });
  }

  /** Gives up the places of what has ended. Where that fails, the next sign-in finds that their sessions are over. */
  async #settle(request: PlaceRequest, outcome: Pick<SettledPlace, 'isStored' | 'ended'>): Promise<void> {
    const { principal, id, replaced, latest } = request;
    const place = { id, replaced, latest, ...outcome };
    await this.#ask((scripts) => scripts.settle(principal, place), request).catch(() => undefined);
  }

  /** Asks the ledger of a principal. */
  #ask<T>(ask: (scripts: LedgerScripts) => Promise<T>, { principal }: PlaceRequest): Promise<T> {
    return this.connection.write((client) => ask(this.#scripts(client)), this.partitions.of(principal).prefix);
  }
}

/** A place that another request has asked for since then is to be looked at again. */
function keyOf({ field, version }: LedgerPlace): string {
  return `${field} ${version}`;
}

function stateOf({ ids, isOpen }: LedgerPlace, words: ReadonlyMap<string, PlacedSession>): PlacedSession {
  return stateIn(
    ids.map((id) => words.get(id)),
    isOpen ? 'absent' : 'over',
  );
}

/** What has become of a session of which this was found, under several ids. */
function stateIn(found: readonly (PlacedSession | undefined)[], otherwise: PlacedSession): PlacedSession {
  if (found.includes('live')) return 'live';
  return found.includes('over') ? 'over' : otherwise;
}

function pairsOf(reply: readonly string[]): [string, string][] {
  return Array.from({ length: reply.length / 2 }, (_, i) => [reply[2 * i]!, reply[2 * i + 1]!]);
}
