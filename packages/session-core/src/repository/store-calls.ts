import { SessionStateError, SessionStoreError } from '../errors/session.errors.js';
import type { SessionChange, WriteReply } from '../session/session-change.js';
import type { SessionIds } from '../session/session-token.js';
import {
  loadChannel,
  saveChannel,
  type SessionLoadContext,
  type SessionSaveContext,
  traced,
} from '../telemetry/channels.js';
import { FailureReasons } from '../logging/failure-reasons.js';
import { logger } from '../logging/session.logger.js';

type Call<T> = () => Promise<T>;

type Operation = SessionSaveContext['operation'];

const NO_SAVES: ReadonlySet<Operation> = new Set<Operation>(['touch', 'delete', 'end_all']);

/** Turns any error of a store into a SessionStoreError, logs the first failure and the recovery, and tells channels. */
export class StoreCalls {
  readonly #failures = new StoreFailureLog();
  #hasFailed = false;

  constructor(
    /** Tells the store from others in tracing channels. */
    readonly namespace: string,
    private readonly ids: Pick<SessionIds, 'shown'>,
  ) {}

  /** `tell`: what the channel tells of the result. `id`: of the session, if it is one. */
  read<T>(
    operation: SessionLoadContext['operation'],
    call: Call<T>,
    tell: (result: T) => Pick<SessionLoadContext, 'found' | 'size'>,
    id?: string,
  ): Promise<T> {
    if (!loadChannel.hasSubscribers) return this.run(call);
    const context = { operation, namespace: this.namespace, sessionId: this.#shown(id) };
    return traced(loadChannel, context, () => this.run(call), tell);
  }

  write(change: SessionChange, call: Call<WriteReply>): Promise<WriteReply> {
    return this.#change(operationOf(change), change.id, call, ({ outcome }) => outcome);
  }

  /** For a session that another library kept. `call` resolves to whether there was one. */
  async takeOver(id: string, call: Call<boolean>): Promise<void> {
    await this.#change('create', id, call, (isStored) => (isStored ? 'created' : 'gone'));
  }

  endAll<T>(call: Call<T>): Promise<T> {
    return this.#change('end_all', undefined, call, () => 'ended');
  }

  #change<T>(operation: Operation, id: string | undefined, call: Call<T>, tell: (result: T) => string): Promise<T> {
    const kind = NO_SAVES.has(operation) ? 'other' : 'save';
    if (!saveChannel.hasSubscribers) return this.run(call, kind);
    const context: SessionSaveContext = { operation, namespace: this.namespace, sessionId: this.#shown(id) };
    const outcome = (result: T) => ({ outcome: tell(result) });
    return traced(saveChannel, context, () => this.run(call, kind), outcome);
  }

  /** No channel tells of it. @throws SessionStateError for what the store never does, SessionStoreError for the rest */
  async run<T>(call: Call<T>, kind: StoreCallKind = 'other'): Promise<T> {
    try {
      const result = await call();
      if (this.#hasFailed) this.#hasFailed = !this.#failures.succeeded(kind);
      return result;
    } catch (error) {
      if (error instanceof SessionStateError) throw error;
      const failure = storeError(error);
      this.#hasFailed = true;
      this.#failures.failed(failure, kind);
      throw failure;
    }
  }

  #shown(id: string | undefined): string | undefined {
    return id === undefined ? undefined : this.ids.shown(id);
  }
}

function operationOf(change: SessionChange): Operation {
  if (change.kind !== 'update') return change.kind;
  if (change.newId !== undefined) return 'change_id';
  return change.expected ? 'update' : 'save';
}

function storeError(error: unknown): SessionStoreError {
  if (error instanceof SessionStoreError) return error;
  return new SessionStoreError(`The store failed: ${kindOf(error)}`, { cause: error });
}

/** Returns the name and code of an error, without its message, because the message may quote a value. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const { name, code } = error as NodeJS.ErrnoException;
  return code === undefined ? name : `${name} ${code}`;
}

// Milliseconds without a failure. While a part of the store is down, calls fail and succeed in turn.
const CALM = 5000;

/** `save`: writes more than there was. A store that is full can do everything else. */
export type StoreCallKind = 'save' | 'other';

/** One line when calls begin to fail, one for each further reason, and one when none has failed for five seconds. */
export class StoreFailureLog {
  readonly #reasons = new FailureReasons();
  #failures = 0;
  #savesFail = false;
  #lastFailure = 0;

  failed(error: SessionStoreError, kind: StoreCallKind): void {
    this.#savesFail ||= kind === 'save';
    this.#lastFailure = performance.now();
    this.#failures++;
    const lasts = this.#reasons.isKnown;
    if (!this.#reasons.add(error)) return;
    // Only the reason, because the cause may quote a value.
    const reason = JSON.stringify(error.reason);
    logger.error(
      lasts
        ? `The session store still fails, for another reason: ${reason}`
        : `The session store failed, so requests that need their session get a 503 response: ${reason}`,
    );
  }

  succeeded(kind: StoreCallKind): boolean {
    if (this.#failures === 0) return true;
    if (this.#savesFail && kind !== 'save') return false;
    if (performance.now() - this.#lastFailure < CALM) return false;
    const calls = this.#failures === 1 ? '1 failed call' : `${this.#failures} failed calls`;
    logger.log(`The session store works again after ${calls}`);
    this.#failures = 0;
    this.#savesFail = false;
    this.#reasons.clear();
    return true;
  }
}
