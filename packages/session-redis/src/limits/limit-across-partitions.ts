import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { TurnQueue } from '@nest-session/core/internal';
import type { CreateSession, SessionLimit, UpdateSession, WriteReply } from '@nest-session/core/store';
import { LIMITED_SINCE, RequestConnection, type ScriptsOn } from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { REDIS_SESSION_OPTIONS, REQUEST_SESSION_SCRIPTS } from '../configuration/redis-session.tokens.js';
import { anyGoesOn } from '../keys/rotated-sessions.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type {
  LedgerPlace,
  PlaceFindings,
  Reservation,
  ReservationRequest,
  Room,
  SessionScripts,
  StoreReply,
  TakeOverReply,
} from '../scripts/session/session.scripts.js';

export type LimitedChange = (CreateSession | UpdateSession) & { readonly limit: SessionLimit };

type Store = (room?: Room) => Promise<StoreReply<WriteReply>>;

interface PlaceRequest extends ReservationRequest {
  readonly principal: string;
  /** Ids that the client presented and that opened nothing. */
  readonly presentedIds: readonly string[];
  /** The latest time to store the session, in epoch milliseconds. */
  latest?: number;
  /** Whether the ledger had its id before: an attempt whose reply was lost may have stored it. */
  wasKnown?: boolean;
}

// Nothing was stored, and the place is not needed.
type NotStored = 'gone' | 'full' | 'unplaced' | 'revoked';
const NOT_STORED: readonly string[] = ['gone', 'full', 'unplaced', 'revoked'] satisfies NotStored[];

// How long a session with a place may take to be stored, in command timeouts: each step takes one at most.
const STEPS = 5;

// Milliseconds. Sign-ins of one principal may overlap: that only costs more looks.
const LONGEST_TURN = 100;

// Milliseconds between two attempts to get a place. It does not grow: those who wait for long would come last.
const LONGEST_WAIT = 10;

/**
 * `SessionLimit` where the sessions of a principal are in several partitions; with one, it is
 * scripts/library/limit-in-one-partition.lua. The ledger of a principal has a place for each of its sessions, and no
 * more places that stay than the limit allows. A sign-in
 *
 * 1. takes a place. When none is left, the places that were taken first are to end for it, each for one sign-in only;
 * 2. then looks which of the sessions are over, and uses the place of one of these instead;
 * 3. else ends the sessions of the places that are to end for it;
 * 4. stores the session, within a limited time. When that has passed, its place is given up.
 *
 * Who has a place waits for nobody, and who waits for a place has none, so one sign-in always makes progress.
 */
@Injectable()
export class LimitAcrossPartitions {
  /** The sign-ins of one process need not wait for a place at the same time. */
  readonly #turns = new TurnQueue<StoreReply<WriteReply>>(LONGEST_TURN);
  readonly #duration: number;
  /** Milliseconds to wait for a place: longer than an unfinished sign-in keeps its own. */
  readonly #patience: number;
  /** Since when instances limit sessions. */
  #since: string | undefined;

  constructor(
    @Inject(RequestConnection) private readonly connection: RequestConnection,
    @Inject(REQUEST_SESSION_SCRIPTS) private readonly scripts: ScriptsOn<SessionScripts>,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(REDIS_SESSION_OPTIONS) { commandTimeout }: Pick<ResolvedRedisSessionOptions, 'commandTimeout'>,
  ) {
    this.#duration = STEPS * commandTimeout;
    this.#patience = this.#duration + commandTimeout;
  }

  write(change: LimitedChange, store: Store): Promise<StoreReply<WriteReply>> {
    // A session that ends at once is never one of them.
    if (change.maxInactiveInterval === 0 || change.absoluteTimeout === 0) return store();
    const { principal, atMost, whenReached } = change.limit;
    const joins = change.indexes.get(PRINCIPAL_NAME_INDEX_NAME) === principal;
    const request: PlaceRequest = {
      id: ('newId' in change && change.newId) || change.id,
      replaced: change.kind === 'update' ? change.id : undefined,
      atMost: joins ? atMost : undefined,
      whenReached,
      duration: this.#duration,
      principal,
      presentedIds: 'presentedIds' in change ? change.presentedIds : [],
    };
    return this.#turns.run(principal, () => this.#write(request, store));
  }

  async #write(request: PlaceRequest, store: Store): Promise<StoreReply<WriteReply>> {
    const giveUpAt = this.now() + this.#patience;
    for (;;) {
      const ended = await this.#makeRoom(request, giveUpAt).catch(async (error: unknown) => {
        await this.#release(request, 'unknown');
        throw error;
      });
      if (typeof ended === 'string') {
        await this.#release(request, ended);
        if (ended !== 'gone' || request.replaced === undefined) return { outcome: ended };
        // The script knows whether it was rotated. It stores nothing, because that time has passed.
        return store({ until: 0, principal: request.principal });
      }
      const reply = await store({ until: request.latest!, principal: request.principal });
      const { outcome } = reply;
      // Not awaited: until then, the place only seems to be open.
      if (outcome === 'created' || outcome === 'saved') void this.#keep(request, ended);
      if (NOT_STORED.includes(outcome)) await this.#release(request, outcome as NotStored);
      // The process stood still. It needs another place.
      if (outcome !== 'late') return reply;
      if (this.now() > giveUpAt) return { outcome: 'refused' };
    }
  }

  /** Stores a session that is taken over. Its principal has signed in elsewhere: it gets a place in any case. */
  async takeOver(id: string, principal: string, store: () => Promise<TakeOverReply>): Promise<TakeOverReply> {
    if (this.partitions.count === 1) return store();
    const whenReached = 'end-oldest';
    const request: PlaceRequest = { id, whenReached, duration: this.#duration, principal, presentedIds: [] };
    await this.#makeRoom(request, this.now() + this.#patience);
    const outcome = await store();
    if (outcome === 'created') void this.#keep(request, []);
    if (outcome === 'refused') await this.#release(request, 'gone');
    return outcome;
  }

  /** Takes a place, and ends what must end for it. Returns the places of that, or why there is no room. */
  async #makeRoom(request: PlaceRequest, giveUpAt: number): Promise<readonly LedgerPlace[] | 'refused' | 'gone'> {
    let findings: PlaceFindings = {};
    for (;;) {
      const place = await this.#reserve(request, findings);
      if (place.word === 'unknown') {
        findings = { sessions: await this.#sessionsOf(request) };
      } else if (place.word === 'busy') {
        if (await this.#isGone(request)) return 'gone';
        if (this.now() > giveUpAt) return 'refused';
        await this.sleep(LONGEST_WAIT);
        findings = {};
      } else {
        const { word, ending, others } = place;
        if (word === 'room' && ending.length === 0) return [];
        const [isGone, live] = await Promise.all([this.#isGone(request), this.#find(request, [...ending, ...others])]);
        const over = [...ending, ...others].filter(({ id }) => !live.has(id));
        const left = ending.filter(({ id }) => live.has(id));
        if (over.length > ending.length - left.length) {
          findings = { over };
        } else if (word === 'refused') {
          return word;
        } else {
          if (left.length > 0 && isGone) return 'gone';
          await Promise.all(left.map(({ id }) => this.#end(request, id)));
          return ending;
        }
      }
    }
  }

  async #reserve(request: PlaceRequest, findings: PlaceFindings): Promise<Reservation> {
    const { meta } = this.partitions;
    this.#since ??= (await this.connection.run((client) => client.hget(meta, LIMITED_SINCE), meta)) ?? undefined;
    const reservation = { ...request, since: this.#since };
    const place = await this.#ask((scripts) => scripts.reserve(request.principal, reservation, findings), request);
    if (place.word === 'room') {
      request.latest = place.latest;
      request.wasKnown ??= place.wasKnown;
    }
    return place;
  }

  async #sessionsOf({ principal }: PlaceRequest): Promise<[id: string, at: string][]> {
    const replies = await this.connection.runInAll(this.partitions, (client, keys) =>
      client.zrange(keys.index(PRINCIPAL_NAME_INDEX_NAME, principal), '0', '-1', 'WITHSCORES'),
    );
    return replies.flatMap((reply) =>
      Array.from({ length: reply.length / 2 }, (_, i): [string, string] => [reply[2 * i]!, reply[2 * i + 1]!]),
    );
  }

  protected now(): number {
    return performance.now();
  }

  protected async sleep(ms: number): Promise<void> {
    await sleep(ms * Math.random());
  }

  /** Whether the session that signs in is over, or may not be created, so that nothing must end for it. */
  async #isGone({ replaced, presentedIds }: PlaceRequest): Promise<boolean> {
    // It is not created where the client presents a token that was just replaced.
    if (replaced === undefined) return anyGoesOn(this.connection, this.partitions, presentedIds);
    const shadow = this.partitions.of(replaced).shadow(replaced);
    return (await this.connection.run((client) => client.exists(shadow), shadow)) === 0;
  }

  /** Ends a session of the principal. Afterwards it is over, whoever has ended it. */
  async #end({ principal }: PlaceRequest, id: string): Promise<void> {
    const listed = { indexName: PRINCIPAL_NAME_INDEX_NAME, value: principal };
    const end = (client: Redis) => this.scripts(client).delete(id, { listed, reason: 'limit' });
    await this.connection.write(end, this.partitions.of(id).prefix);
  }

  async #find({ principal }: PlaceRequest, places: readonly LedgerPlace[]): Promise<ReadonlySet<string>> {
    const live = await Promise.all(
      this.partitions.grouped(places.map(({ id }) => id)).map(([keys, ids]) => {
        const index = keys.index(PRINCIPAL_NAME_INDEX_NAME, principal);
        return this.connection.run((client) => this.scripts(client).find(keys, index, ids), keys.prefix);
      }),
    );
    return new Set(live.flat());
  }

  /** A session that was stored keeps its place. Those that have ended for it give theirs up. */
  async #keep(request: PlaceRequest, ended: readonly LedgerPlace[]): Promise<void> {
    const { id, replaced } = request;
    // Another attempt to store it may still be under way, so its place stays open.
    if (request.wasKnown && replaced !== id) return;
    const before = replaced === undefined || replaced === id ? [] : [replaced];
    await this.#settle(request, true, [...before, ...ended.map((place) => place.id)]);
  }

  /** Gives up the place of a session that was not stored, unless the session has it anyway. */
  async #release(request: PlaceRequest, outcome: NotStored | 'refused' | 'unknown'): Promise<void> {
    const { id, replaced, wasKnown = false } = request;
    if (replaced === id) await this.#settle(request, wasKnown && outcome !== 'gone');
    else if (!wasKnown) await this.#settle(request, false);
  }

  /** Where that fails, the place goes when its time has passed, or its session turns out to be over. */
  async #settle(request: PlaceRequest, isStored: boolean, over: readonly string[] = []): Promise<void> {
    const { principal, id } = request;
    await this.#ask((scripts) => scripts.settle(principal, id, isStored, over), request).catch(() => undefined);
  }

  #ask<T>(ask: (scripts: SessionScripts) => Promise<T>, { principal }: PlaceRequest): Promise<T> {
    return this.connection.write((client) => ask(this.scripts(client)), this.partitions.of(principal).prefix);
  }
}
