import { Gate } from '@nest-session/test-infrastructure';
import { type IndexedSessionRepository, MapSessionRepository, SessionStoreError } from '../../src/index.js';
import type { MapSessionRepositoryOptions } from '../../src/internal.js';
import type { SessionChange, SessionRecord, WriteReply } from '../../src/store.js';

type Call = 'load' | SessionChange['kind'];

/** Calls that can be held and made to fail, and that are not counted. */
type UncountedCall = 'look-up' | 'clock';

/** The error of a store that cannot be reached. */
export const STORE_FAILURE = new SessionStoreError('The test has broken the store');

/** With these a test counts the calls of a store, holds them and makes them fail. */
export interface StoreGates {
  readonly calls: Call[];
  readonly changes: SessionChange[];
  /** The ids of each load. */
  readonly lookUps: (readonly string[])[];
  /** Holds all calls of a kind from now on, until the gate is opened. */
  gate(call: Call | UncountedCall): Gate;
  /** Makes all calls of a kind fail from now on. */
  break(call: Call | UncountedCall, error?: unknown): void;
  repair(): void;
}

export type GatedStore = IndexedSessionRepository & StoreGates;

/** What a store implements, which is protected. */
export interface StoreMethods {
  load(ids: readonly string[], only?: readonly string[]): Promise<readonly SessionRecord[]>;
  write(change: SessionChange): Promise<WriteReply>;
  lookUp(indexName: string, value: string): Promise<readonly SessionRecord[]>;
  readClock(): Promise<number>;
}

/** Replaces methods of one store. `by`: makes those that come in their place, and may call them. */
export function replaceMethods(
  store: IndexedSessionRepository,
  by: (methods: StoreMethods) => Partial<StoreMethods>,
): void {
  const methods = store as unknown as StoreMethods;
  const { load, write, lookUp, readClock } = methods;
  Object.assign(
    store,
    by({
      load: (...args) => load.apply(methods, args),
      write: (...args) => write.apply(methods, args),
      lookUp: (...args) => lookUp.apply(methods, args),
      readClock: () => readClock.apply(methods),
    }),
  );
}

/** Puts gates on one store of any kind. */
export function putGates<Store extends IndexedSessionRepository>(store: Store): Store & StoreGates {
  const calls: Call[] = [];
  const changes: SessionChange[] = [];
  const lookUps: (readonly string[])[] = [];
  const gates = new Map<Call | UncountedCall, Gate>();
  const pass = async (call: Call) => {
    calls.push(call);
    await gates.get(call)?.pass();
  };
  const gate = (call: Call | UncountedCall) => {
    const made = new Gate();
    gates.set(call, made);
    return made;
  };
  replaceMethods(store, (methods) => ({
    load: async (ids, only) => {
      lookUps.push(ids);
      await pass('load');
      return methods.load(ids, only);
    },
    write: async (change) => {
      changes.push(change);
      await pass(change.kind);
      return methods.write(change);
    },
    lookUp: async (indexName, value) => {
      await gates.get('look-up')?.pass();
      return methods.lookUp(indexName, value);
    },
    readClock: async () => {
      await gates.get('clock')?.pass();
      return methods.readClock();
    },
  }));
  return Object.assign(store, {
    calls,
    changes,
    lookUps,
    gate,
    break: (call: Call | UncountedCall, error: unknown = STORE_FAILURE) => gate(call).fail(error),
    repair: () => gates.clear(),
  });
}

type GatedMap = new (options?: MapSessionRepositoryOptions) => MapSessionRepository & StoreGates;

/** The store in memory, with gates. */
export class GatedRepository extends (MapSessionRepository as GatedMap) {
  constructor(options?: MapSessionRepositoryOptions) {
    super(options);
    putGates(this);
  }
}
