import { MapSessionRepository, SessionStoreError } from '../../src/index.js';
import type { MapSessionRepositoryOptions } from '../../src/internal.js';
import type { SessionChange, SessionRecord, WriteReply } from '../../src/store.js';
import { Gate } from '@nest-session/test-infrastructure';

type Call = 'load' | SessionChange['kind'];

/** Calls that can be held and made to fail, and that are not counted. */
type UncountedCall = 'look-up' | 'clock';

/** The error of a store that cannot be reached. */
export const STORE_FAILURE = new SessionStoreError('The test has broken the store');

/** The store in memory. A test can count its calls, hold them and make them fail. */
export class GatedRepository extends MapSessionRepository {
  readonly calls: Call[] = [];
  readonly changes: SessionChange[] = [];
  /** The ids of each load. */
  readonly lookUps: (readonly string[])[] = [];
  readonly #gates = new Map<Call | UncountedCall, Gate>();

  constructor(options?: MapSessionRepositoryOptions) {
    super(options);
  }

  /** Holds all calls of a kind from now on, until the gate is opened. */
  gate(call: Call | UncountedCall): Gate {
    const gate = new Gate();
    this.#gates.set(call, gate);
    return gate;
  }

  /** Makes all calls of a kind fail from now on. */
  break(call: Call | UncountedCall, error: unknown = STORE_FAILURE): void {
    this.gate(call).fail(error);
  }

  repair(): void {
    this.#gates.clear();
  }

  override async load(ids: readonly string[]): Promise<SessionRecord[]> {
    this.lookUps.push(ids);
    await this.#pass('load');
    return super.load(ids);
  }

  override async write(change: SessionChange): Promise<WriteReply> {
    this.changes.push(change);
    await this.#pass(change.kind);
    return super.write(change);
  }

  protected override async lookUp(indexName: string, value: string): Promise<SessionRecord[]> {
    await this.#gates.get('look-up')?.pass();
    return super.lookUp(indexName, value);
  }

  protected override async readClock(): Promise<number> {
    await this.#gates.get('clock')?.pass();
    return super.readClock();
  }

  async #pass(call: Call): Promise<void> {
    this.calls.push(call);
    await this.#gates.get(call)?.pass();
  }
}
