import {
  PRINCIPAL_NAME_INDEX_NAME,
  type SessionEvent,
  SessionIdChangedEvent,
  SessionIdGenerator,
} from '@nest-session/core';
import { SessionIds } from '@nest-session/core/store';
import { PreconditionFailure, type Scheduler } from 'fast-check';
import {
  type Act,
  type CleanupPlan,
  type ClockPlan,
  type Plan,
  PRINCIPALS,
  type RequestPlan,
  type Wait,
} from './actors.js';
import { MINUTE } from '../../support/store.fixture.js';
import { ComparedRepository } from './compared.repository.js';
import type { ModelledStore } from './modelled.store.js';
import { type Browser, RequestActor } from './request.actor.js';
import { type ModelEvent, SessionModel } from './session.model.js';
import type { Turns } from './store.turns.js';

/** Draws the same tokens each time. */
class CountedTokens extends SessionIdGenerator {
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
    private readonly store: ModelledStore,
    private readonly turns: Turns,
    private readonly model: SessionModel,
  ) {
    this.#begun = model.now;
  }

  /** After `opening`, all of `actors` act at the same time. */
  static async run(
    store: ModelledStore,
    turns: Turns,
    scheduler: Scheduler,
    opening: readonly Act[],
    actors: readonly Plan[],
  ): Promise<void> {
    await store.clear();
    // On a full minute: what a sweep finds depends on it.
    await store.advance(MINUTE - ((await store.now()) % MINUTE));
    const sequence = new Sequence(store, turns, new SessionModel(store.traits, await store.now()));
    try {
      await sequence.#inTurns(scheduler, () => [sequence.#open(opening)]);
      await sequence.#inTurns(scheduler, () => actors.map((plan, i) => sequence.#act(plan, `${plan.is} ${i + 1}`)));
      await sequence.#inTurns(scheduler, () => [sequence.#finish()]);
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
    await this.#lookUpAll(repository);
    await this.#wait(() => this.model.quietFrom - this.model.now);
    await this.#cleanUp({ is: 'cleanup', node: 0, finds: 'over' }, 'in the end');
    for (const id of this.model.aliveIds) await repository.deleteById(id);
    // A lookup removes sessions without data from the index.
    if (this.model.hasLostData) await this.#lookUpAll(repository);
  }

  async #lookUpAll(repository: ComparedRepository): Promise<void> {
    for (const name of PRINCIPALS) await repository.findByPrincipalName(name);
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
      await this.store.advance(ms);
      this.model.advance(ms);
    });
  }

  async #cleanUp({ node, finds }: CleanupPlan, name: string): Promise<void> {
    const { sweep, hearOf } = this.#node(node);
    this.#say(name, `begins, with what is ${finds}`);
    const ahead = finds === 'ahead' ? MINUTE : 0;
    const expectReported = finds === 'heard of' ? this.model.hearOf() : this.model.sweep(ahead);
    await (finds === 'heard of' ? hearOf(this.model.ids) : sweep(ahead));
    this.#say(name, 'has finished');
    this.#afterLook.push(expectReported);
  }

  #repository(node: number, name: string): ComparedRepository {
    const say = (what: string, response: string) => this.#say(name, `${what} -> ${response}`);
    return new ComparedRepository(this.#node(node), this.model, this.#ids, say);
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
      .replaceAll(PRINCIPAL_NAME_INDEX_NAME, 'principal')
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
