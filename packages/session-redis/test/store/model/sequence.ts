import {
  PRINCIPAL_NAME_INDEX_NAME,
  type SessionEvent,
  SessionIdChangedEvent,
  SessionTokenGenerator,
  TooManySessionsError,
} from '@nest-session/core';
import { SessionIds, PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import { PreconditionFailure, type Scheduler } from 'fast-check';
import {
  type Act,
  type CleanupPlan,
  type ClockPlan,
  type Plan,
  PRINCIPALS,
  type RequestPlan,
  type SequencePlan,
  TEAMS,
  type Wait,
} from './actors.js';
import { MINUTE } from '../../support/store.fixture.js';
import { ComparedRepository, TEAM } from './compared.repository.js';
import type { MaxSessions, ModelledStore } from './modelled.store.js';
import { type Browser, RequestActor } from './request.actor.js';
import { type ModelEvent, SessionModel } from './session.model.js';
import type { Turns } from './store.turns.js';

/** All that the indexes may list. */
const ENTRIES = [
  ...PRINCIPALS.map((name) => [PRINCIPAL_NAME_INDEX_NAME, name] as const),
  ...TEAMS.map((name) => [TEAM, name] as const),
];

// Milliseconds for which the ledger of a principal keeps room for a sign-in that has failed.
const RESERVED_FOR = 5001;

/** Draws the same tokens each time. */
class CountedTokens extends SessionTokenGenerator {
  #count = 0;

  generate(): string {
    return `token-${String(++this.#count).padStart(20, '0')}`;
  }
}

/** Concurrent steps of requests, the clock and the sweeper, each compared with the model. */
export class Sequence {
  readonly #ids = new SessionIds(new CountedTokens());
  /** The last one has the cookie of an unknown session. */
  readonly #browsers: readonly Browser[] = [{}, {}, { cookie: 'x'.repeat(43) }];
  readonly #trace: string[] = [];
  readonly #begun: number;
  /** The checks that wait for the events of the last step. */
  readonly #afterLook: (() => void)[] = [];

  private constructor(
    private readonly limit: MaxSessions | undefined,
    private readonly store: ModelledStore,
    private readonly turns: Turns,
    private readonly model: SessionModel,
  ) {
    this.#begun = model.now;
  }

  /** Runs a sequence, and compares each step. */
  static async run(
    store: ModelledStore,
    turns: Turns,
    scheduler: Scheduler,
    { limit, opening, actors }: SequencePlan,
  ): Promise<void> {
    // On a full minute: what a sweep finds depends on it.
    await store.advance(MINUTE - ((await store.now()) % MINUTE));
    const model = new SessionModel(store.traits, await store.now(), limit?.perPrincipal);
    await store.clear(model, limit);
    const sequence = new Sequence(limit, store, turns, model);
    try {
      await sequence.#inTurns(scheduler, () => [sequence.#open(opening)]);
      await sequence.#inTurns(scheduler, () => actors.map((plan, i) => sequence.#act(plan, `${plan.is} ${i + 1}`)));
      await sequence.#inTurns(scheduler, () => [sequence.#finish()]);
      // The model has heard of the last step only now.
      if (model.hasLostData) await sequence.#inTurns(scheduler, () => [sequence.#lookUpAll()]);
      expect(await store.leftovers()).toEqual([]);
    } catch (error) {
      const problem = rootOf(error);
      throw PreconditionFailure.isFailure(problem)
        ? problem
        : new Error(sequence.#legible(problem), { cause: problem });
    }
  }

  #inTurns(scheduler: Scheduler, start: () => Promise<unknown>[]): Promise<void> {
    return this.turns.order(scheduler, start, () => this.#look());
  }

  async #open(acts: readonly Act[]): Promise<void> {
    const [first, second] = this.#browsers;
    const something = { does: 'set', name: 'color', to: 0 } as const;
    await this.#request({ is: 'request', browsers: [0], node: 0, acts: [something, ...acts] }, 'opening');
    second!.cookie = first!.cookie;
  }

  /** Expects each end to be reported, and no key to be left once the other sessions are deleted. */
  async #finish(): Promise<void> {
    const repository = this.#repository(0, 'in the end');
    if (this.limit && this.#node(0).signsInStepwise) await this.#wait(() => RESERVED_FOR);
    for (const finds of this.model.cleanups) await this.#cleanUp({ is: 'cleanup', node: 0, finds }, 'in the end');
    await this.turns.take('agree', () => this.#agree(ENTRIES));
    if (this.limit) await this.#fillUp(this.limit);
    await this.#wait(() => this.model.quietFrom - this.model.now);
    await this.#cleanUp({ is: 'cleanup', node: 0, finds: 'over' }, 'in the end');
    for (const id of this.model.aliveIds) await repository.deleteById(id);
  }

  /** A lookup removes sessions without data from the index. */
  async #lookUpAll(): Promise<void> {
    const repository = this.#repository(0, 'in the end');
    for (const [indexName, value] of ENTRIES) await repository.findByIndex(indexName, value);
  }

  /** Whatever has happened, now exactly as many sessions of a principal fit in as the limit says. */
  async #fillUp({ perPrincipal, whenReached }: MaxSessions): Promise<void> {
    const name = PRINCIPALS.toSorted((a, b) => this.model.idsOf(b).length - this.model.idsOf(a).length)[0]!;
    const node = { ...this.#node(0), steps: this.store.atOnce };
    const say = (what: string, response: string) => this.#say('in the end', `${what} -> ${response}`);
    const repository = new ComparedRepository(node, this.model, this.#ids, say, this.limit);
    const refuses = whenReached === 'refuse';
    // Of sign-ins in the same millisecond, any may be the oldest. While none is ended, no session may expire meanwhile.
    const pause = refuses ? 0 : 1;
    const ids: string[] = refuses ? this.model.idsOf(name) : [];
    while (ids.length < perPrincipal) ids.push(await this.#signIn(repository, name, pause));
    if (refuses) await expect(this.#signIn(repository, name, pause)).rejects.toThrow(TooManySessionsError);
    await this.turns.take('agree', async () => {
      this.model.expectSessions(name, ids);
      await this.#agree([[PRINCIPAL_NAME_INDEX_NAME, name]]);
    });
  }

  async #signIn(repository: ComparedRepository, name: string, pause: number): Promise<string> {
    const session = repository.createSession();
    session.signIn(name);
    repository.edits.begin([]);
    repository.edits.set(PRINCIPAL_ATTRIBUTE, name);
    await this.turns.take('sign in', async () => {
      if (pause > 0) await this.#advance(pause);
      await session.save();
    });
    return session.id;
  }

  /** Nothing is in flight, and every end is reported: sessions, indexes and ledgers are exactly what the model says. */
  async #agree(entries: readonly (readonly [indexName: string, value: string])[]): Promise<void> {
    const { atOnce } = this.store;
    const compareEntry = async ([indexName, value]: readonly [string, string]) => {
      // It removes sessions without data from the index, which would count.
      const found = await atOnce.lookUp(indexName, value);
      const [listed, count] = await Promise.all([atOnce.listAll(indexName, value), atOnce.count(indexName, value)]);
      this.model.expectListed(indexName, value, { found, listed, count });
    };
    const comparePlaces = async (name: string) => {
      const places = this.limit && (await this.store.placesOf(name));
      if (places) this.model.expectPlaces(name, places);
    };
    const ids = this.model.aliveIds;
    const compareSessions = async () => this.model.expectLoaded(ids, await atOnce.load(ids));
    await Promise.all([compareSessions(), ...entries.map(compareEntry), ...PRINCIPALS.map(comparePlaces)]);
  }

  #act(plan: Plan, name: string): Promise<void> {
    switch (plan.is) {
      case 'request':
        return this.#request(plan, name);
      case 'clock':
        return this.#passTime(plan);
      case 'cleanup':
        return this.#cleanUp(plan, name);
    }
  }

  #request(plan: RequestPlan, name: string): Promise<void> {
    const browsers = plan.browsers.map((i) => this.#browsers[i]!);
    return new RequestActor(plan, browsers, this.#repository(plan.node, name)).run();
  }

  async #passTime({ waits }: ClockPlan): Promise<void> {
    for (const wait of waits) await this.#wait(() => this.#lengthOf(wait));
  }

  #lengthOf(wait: Wait): number {
    if ('ms' in wait) return wait.ms;
    const { instants, now } = this.model;
    const instant = instants.toSorted((a, b) => a - b)[wait.to % instants.length] ?? now;
    return Math.max(0, instant + wait.plus - now);
  }

  #wait(length: () => number): Promise<void> {
    return this.turns.take('clock', async () => {
      const ms = length();
      this.#say('clock', `${ms} ms pass`);
      await this.#advance(ms);
    });
  }

  async #advance(ms: number): Promise<void> {
    await this.store.advance(ms);
    this.model.advance(ms);
  }

  async #cleanUp({ node, finds }: CleanupPlan, name: string): Promise<void> {
    const { sweep, hearOf, endOlder } = this.#node(node);
    this.#say(name, `begins, with what is ${finds}`);
    if (finds === 'older') return endOlder(() => this.model.expectOlderEnded());
    const ahead = finds === 'ahead' ? MINUTE : 0;
    const expectReported = finds === 'heard of' ? this.model.hearOf() : this.model.sweep(ahead);
    await (finds === 'heard of' ? hearOf(this.model.ids) : sweep(ahead));
    this.#say(name, 'has finished');
    this.#afterLook.push(expectReported);
  }

  #repository(node: number, name: string): ComparedRepository {
    const say = (what: string, response: string) => this.#say(name, `${what} -> ${response}`);
    return new ComparedRepository(this.#node(node), this.model, this.#ids, say, this.limit);
  }

  #node(index: number) {
    const { nodes } = this.store;
    return nodes[index % nodes.length]!;
  }

  /** Called with the events of the last step. */
  async #look(): Promise<void> {
    const events = await this.store.recorded();
    for (const event of events) this.#say('  recorded', event.id);
    this.model.expectRecorded(events.map(modelEventOf));
    for (const expectation of this.#afterLook.splice(0)) expectation();
  }

  #say(who: string, what: string): void {
    this.#trace.push(`${who}: ${what}`);
  }

  /** The log of a sequence, with numbers for ids and times since its start. */
  #legible(problem: unknown): string {
    const text = [...this.#trace, '', String(problem)]
      .join('\n')
      .replaceAll(PRINCIPAL_ATTRIBUTE, 'principal')
      .replaceAll(/\b\d{13}\b/g, (time) => `${Number(time) - this.#begun}`);
    return this.model.ids.reduce((legible, id, i) => legible.replaceAll(id, `#${i + 1}`), text);
  }
}

function modelEventOf(event: SessionEvent): ModelEvent {
  const { type, sessionId, at, dataLost, principalName, session } = event;
  const values = session.attributeNames.map((name) => [name, session.getAttribute(name)] as const);
  return {
    type,
    sessionId,
    previousSessionId: event instanceof SessionIdChangedEvent ? event.previousSessionId : undefined,
    at,
    dataLost,
    creationTime: session.creationTime,
    principalName,
    attributes: Object.fromEntries(values),
  };
}

/** The error of the store or of the comparison with the model. */
function rootOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootOf(error.cause) : error;
}
