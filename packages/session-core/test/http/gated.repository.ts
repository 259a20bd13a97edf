import { SessionStoreError, MapSessionRepository } from '../../src/index.js';
import type { MapSessionRepositoryOptions } from '../../src/store.js';
import type { SessionChange, SessionRecord, WriteReply } from '../../src/store.js';

type Call = 'load' | SessionChange['kind'];

/** A call of the store that waits until the test lets it go on. */
export class Gate {
  readonly #arrivals: (() => void)[] = [];
  readonly #opened: Promise<void>;
  #arrived = 0;
  #open!: () => void;
  #fail!: (error: unknown) => void;

  constructor() {
    this.#opened = new Promise((resolve, reject) => {
      this.#open = resolve;
      this.#fail = reject;
    });
    this.#opened.catch(() => undefined);
  }

  /** Resolves when a call waits here. */
  async reached(): Promise<void> {
    if (this.#arrived === 0) await new Promise<void>((resolve) => this.#arrivals.push(resolve));
  }

  open(): void {
    this.#open();
  }

  fail(error: unknown = new SessionStoreError('The test has broken the store')): void {
    this.#fail(error);
  }

  pass(): Promise<void> {
    this.#arrived++;
    for (const arrival of this.#arrivals.splice(0)) arrival();
    return this.#opened;
  }
}

/** The store in memory, whose calls a test can count, hold and let fail. */
export class GatedRepository extends MapSessionRepository {
  readonly calls: Call[] = [];
  readonly #gates = new Map<Call, Gate>();

  constructor(options?: MapSessionRepositoryOptions) {
    super(options);
  }

  /** All calls of a kind wait, from now on until the gate is opened. */
  gate(call: Call): Gate {
    const gate = new Gate();
    this.#gates.set(call, gate);
    return gate;
  }

  /** All calls of a kind fail from now on. */
  break(call: Call, error?: unknown): void {
    this.gate(call).fail(error);
  }

  repair(): void {
    this.#gates.clear();
  }

  override async load(ids: readonly string[]): Promise<SessionRecord[]> {
    await this.#pass('load');
    return super.load(ids);
  }

  override async write(change: SessionChange): Promise<WriteReply> {
    await this.#pass(change.kind);
    return super.write(change);
  }

  async #pass(call: Call): Promise<void> {
    this.calls.push(call);
    await this.#gates.get(call)?.pass();
  }
}
