import assert from 'node:assert/strict';
import type { DynamicModule, INestApplicationContext, Provider, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type DeadlineEvent, DeadlineEvents, DeadlineModule, Deadlines } from '@nest-session/deadlines';
import { eventually } from '@nest-session/testing';
import { Visits } from './visits.js';
import type { DeadlineContractOptions, DeadlineStoreUnderTest } from './deadline-store-under-test.js';

/** The options of `DeadlineModule`. */
type Options = Parameters<typeof DeadlineModule.forRoot>[0];

interface ApplicationParts {
  readonly providers?: readonly Provider[];
  readonly options?: Options;
  readonly group?: string;
}

/** One check of a store: its applications, and their time. */
export class DeadlineTrial {
  readonly #apps: INestApplicationContext[] = [];

  private constructor(
    private readonly store: DeadlineStoreUnderTest,
    private readonly longestBackOff: number,
  ) {}

  static async open({ open, longestBackOff }: DeadlineContractOptions): Promise<DeadlineTrial> {
    return new DeadlineTrial(await open(), longestBackOff);
  }

  /** Starts an application with these providers. */
  start(...providers: readonly Provider[]): Promise<DeadlineApplication> {
    return this.startWith({ providers });
  }

  /** Starts an application that handles both `visit` and `call`. */
  async visited(): Promise<{ app: DeadlineApplication; deadlines: Deadlines; visits: Visits }> {
    const app = await this.start(Visits);
    return { app, deadlines: app.deadlines, visits: app.get(Visits) };
  }

  async startWith({ providers = [], options = {}, group }: ApplicationParts): Promise<DeadlineApplication> {
    const root: DynamicModule = {
      module: Root,
      imports: [DeadlineModule.forRoot(options), this.store.module(group)],
      providers: [...providers],
    };
    const app = await NestFactory.createApplicationContext(root, { logger: false, abortOnError: false });
    this.#apps.push(app);
    return new DeadlineApplication(app);
  }

  /** Lets time pass. */
  async pass(milliseconds: number): Promise<void> {
    await this.store.pass(milliseconds, this.#newest);
  }

  /** The time of the store, in epoch milliseconds. */
  get now(): number {
    return this.store.now(this.#newest);
  }

  /** Lets time pass, step by step, until a check neither throws nor returns false. */
  async until<T>(check: () => T | Promise<T>): Promise<T> {
    let isFirst = true;
    return eventually(async () => {
      if (!isFirst) await this.pass(20);
      isFirst = false;
      return check();
    });
  }

  /** The first of a list as soon as there is one. */
  untilFirst<T>(list: () => readonly T[] | Promise<readonly T[]>): Promise<T> {
    return this.until(async () => {
      const [first] = await list();
      assert.ok(first !== undefined, 'There is none');
      return first;
    });
  }

  /** As `until()`, in steps that are long enough for the next attempt of a handler that failed. */
  async untilRetried<T>(check: () => T | Promise<T>): Promise<T> {
    return eventually(async () => {
      await this.pass(this.longestBackOff);
      return check();
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#apps.map((app) => app.close()));
    await this.store.close();
  }

  get #newest(): INestApplicationContext {
    return this.#apps.at(-1)!;
  }
}

/** A running application. */
export class DeadlineApplication {
  readonly deadlines: Deadlines;
  readonly events: DeadlineEvents;

  constructor(private readonly app: INestApplicationContext) {
    this.deadlines = app.get(Deadlines);
    this.events = app.get(DeadlineEvents);
  }

  get<T>(provider: Type<T>): T {
    return this.app.get(provider);
  }

  close(): Promise<void> {
    return this.app.close();
  }
}

/** The keys of events in alphabetical order, because no order is promised. */
export function keysOfEvents(events: readonly DeadlineEvent[]): string[] {
  return events.map(({ key }) => key).toSorted();
}

class Root {}
