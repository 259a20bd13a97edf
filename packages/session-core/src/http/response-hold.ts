import type { ServerResponse } from 'node:http';
import { logger } from '../logging/session.logger.js';
import { applyHeaders, dropResponseHeaders, type HeadersArgument } from '../resolvers/response-headers.js';

/** The work that a response waits for, and the headers that the work adds. */
export interface CommitGate {
  /** Whether `passed()` was called. */
  readonly headersSent: boolean;
  /** The work that must be done before the headers are sent; undefined when there is none. Never throws. */
  begin(): Promise<void> | undefined;
  /** Adds headers. Called once, when all other headers are set: the application's, or those of the error response. */
  complete(): void;
  /** The headers were sent. */
  passed(): void;
  /** The response that replaces the application's response when the work failed. */
  replace(error: unknown): ErrorResponse;
}

export interface ErrorResponse {
  readonly status: number;
  /** Sent as JSON. */
  readonly body: unknown;
}

interface HeldCall {
  readonly run: () => unknown;
  readonly callback?: ((error?: Error) => void) | undefined;
}

// Far more than a source that heeds `write() === false` leaves here. A single chunk is always accepted, however large.
const MAX_HELD_BYTES = 16 * 1024 * 1024;

/**
 * Holds a response back from its first byte until the work of the gate is done. It replaces `writeHead`, `write`, `end`
 * and `flushHeaders` of the Node.js response, which every platform responds through. Calls are queued in the meantime
 * and then made in their order. Informational responses (1xx) are not held.
 *
 * When there is no work, no call is queued and none becomes asynchronous.
 */
export class ResponseHold {
  readonly #response: ServerResponse;
  readonly #gate: CommitGate;
  readonly #original: Pick<ServerResponse, 'writeHead' | 'write' | 'end' | 'flushHeaders'>;
  /** `open`: nothing was sent; `held`: calls are queued; `through`: calls pass; `replaced`: an error was sent. */
  #state: 'open' | 'held' | 'through' | 'replaced' = 'open';
  #isComplete = false;
  #isEnded = false;
  #calls: HeldCall[] = [];
  #heldBytes = 0;

  /**
   * Makes a response wait for the gate. It cannot be undone: middleware that wraps the response later, such as
   * compression, calls these functions until the end.
   */
  static install(response: ServerResponse, gate: CommitGate): void {
    const hold = new ResponseHold(response, gate);
    Object.assign(response, {
      writeHead: (...args: unknown[]) => hold.#writeHead(args),
      // Its old name in Node.js.
      writeHeader: (...args: unknown[]) => hold.#writeHead(args),
      write: (...args: unknown[]) => hold.#write(args),
      end: (...args: unknown[]) => hold.#end(args),
      flushHeaders: () => hold.#flushHeaders(),
    });
  }

  private constructor(response: ServerResponse, gate: CommitGate) {
    this.#response = response;
    this.#gate = gate;
    const { writeHead, write, end, flushHeaders } = response;
    this.#original = { writeHead, write, end, flushHeaders };
  }

  #writeHead(args: unknown[]): ServerResponse {
    // The other three functions of Node.js call this one when they need headers, and so do wrappers that cannot know
    // that the headers are held.
    if (this.#state === 'through') this.#sendHead(args);
    if (this.#state === 'open') {
      this.#takeHead(args);
      this.#perform({ run: () => this.#sendHead([this.#response.statusCode]) });
    }
    return this.#response;
  }

  #flushHeaders(): void {
    if (this.#state === 'replaced') return;
    this.#perform({ run: () => this.#original.flushHeaders.call(this.#response) });
  }

  #write(args: unknown[]): boolean {
    const callback = callbackIn(args);
    if (this.#state === 'held' && this.#heldBytes > MAX_HELD_BYTES && !this.#isDestroyed) {
      logger.warn(
        'A response was aborted while its session was being saved: its source kept writing although write() returned false',
      );
      this.#response.destroy();
    }
    if (this.#state === 'replaced' || (this.#state === 'held' && this.#isDestroyed)) {
      if (callback) process.nextTick(callback, discarded());
      return false;
    }
    const written = this.#perform({ run: () => Reflect.apply(this.#original.write, this.#response, args), callback });
    if (this.#state === 'held') this.#heldBytes += sizeOf(args[0]);
    return written === true;
  }

  #end(args: unknown[]): ServerResponse {
    const callback = callbackIn(args);
    if (this.#state === 'replaced') {
      if (callback && this.#response.writableFinished) process.nextTick(callback);
      else if (callback) this.#response.once('finish', callback);
      return this.#response;
    }
    this.#perform({ run: () => Reflect.apply(this.#original.end, this.#response, args), callback });
    this.#isEnded = true;
    return this.#response;
  }

  /** Whether the client can no longer be reached. On HTTP/2 only the stream knows. */
  get #isDestroyed(): boolean {
    const { destroyed, stream } = this.#response as ServerResponse & {
      readonly stream?: { readonly destroyed: boolean };
    };
    return stream?.destroyed ?? destroyed;
  }

  /** Makes a call, or queues it; undefined when it was queued. */
  #perform(call: HeldCall): unknown {
    if (this.#state === 'open') {
      const work = this.#gate.begin();
      if (!work) return this.#passFirst(call);
      this.#holdUntil(work);
    }
    if (this.#state !== 'held') return call.run();
    this.#calls.push(call);
    return undefined;
  }

  #passFirst(call: HeldCall): unknown {
    this.#state = 'through';
    try {
      return call.run();
    } finally {
      // An invalid status or header: nothing was sent, and an exception filter will respond.
      if (!this.#gate.headersSent) this.#state = 'open';
    }
  }

  #holdUntil(work: Promise<void>): void {
    const { statusCode } = this.#response;
    this.#state = 'held';
    const restore = this.#showAsSent();
    work.then(
      () => {
        restore();
        // A status that was set after the response was sent is not meant for this response.
        this.#response.statusCode = statusCode;
        this.#release();
      },
      (error: unknown) => {
        restore();
        this.#replace(error);
      },
    );
  }

  /**
   * Makes a held response look as if it had been sent. Otherwise the exception layer of Nest would respond a second
   * time, and a late `redirect()` would change the held response.
   */
  #showAsSent(): () => void {
    const refuse = { value: refuseHeaders };
    return shadow(this.#response, {
      headersSent: { get: () => true },
      writableEnded: { get: () => this.#isEnded },
      writableNeedDrain: { get: () => !this.#isEnded && this.#heldBytes > 0 },
      setHeader: refuse,
      setHeaders: refuse,
      appendHeader: refuse,
      removeHeader: refuse,
    });
  }

  #release(): void {
    this.#state = 'through';
    let isFull = false;
    try {
      // If the client disconnected, Node.js drops what is written, as usual.
      for (const { run } of this.#calls.splice(0)) if (run() === false) isFull = true;
    } catch (error) {
      // Node.js refused a call, for example for an invalid status, that it would have refused when it was made.
      this.#replace(error);
      return;
    }
    // `writableNeedDrain` does not help: it is true for the response of light-my-request, which never drains.
    if (!this.#isEnded && !isFull) this.#response.emit('drain');
  }

  #replace(error: unknown): void {
    const { status, body } = this.#gate.replace(error);
    if (this.#gate.headersSent) this.#response.destroy();
    else if (!this.#isDestroyed) this.#answer(status, JSON.stringify(body));
    this.#state = 'replaced';
    for (const { callback } of this.#calls.splice(0)) if (callback) process.nextTick(callback, discarded());
    // Wakes a source that waits for `drain`; it then finds that the response has ended.
    if (!this.#isEnded) this.#response.emit('drain');
  }

  #answer(status: number, body: string): void {
    const response = this.#response;
    dropResponseHeaders(response);
    // Removed, so that the default for the status applies; setting it causes a warning on HTTP/2.
    Reflect.deleteProperty(response, 'statusMessage');
    this.#state = 'through';
    applyHeaders(response, {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': Buffer.byteLength(body),
      // A source such as server-sent events may stop only when the connection ends. HTTP/2 ends the stream in any case.
      ...(!this.#isEnded && response.req.httpVersionMajor === 1 && { Connection: 'close' }),
    });
    this.#sendHead([status]);
    this.#original.end.call(response, response.req.method === 'HEAD' ? undefined : body, 'utf8');
  }

  /** Sets what was given to `writeHead()`, because headers given there would replace ours. */
  #takeHead([status, ...rest]: unknown[]): void {
    const [reason, headers] = typeof rest[0] === 'string' ? rest : [undefined, rest[0] ?? rest[1]];
    if (headers) applyHeaders(this.#response, headers as HeadersArgument);
    this.#response.statusCode = status as number;
    if (typeof reason === 'string') this.#response.statusMessage = reason;
  }

  #sendHead(args: unknown[]): void {
    if (!this.#gate.headersSent) {
      this.#takeHead(args);
      if (!this.#isComplete) this.#gate.complete();
      this.#isComplete = true;
    }
    this.#original.writeHead.call(this.#response, this.#response.statusCode);
    this.#gate.passed();
  }
}

/** Overrides properties of an object. The function that it returns restores them. */
function shadow(target: object, properties: PropertyDescriptorMap): () => void {
  const before = Object.keys(properties).map((name) => [name, Object.getOwnPropertyDescriptor(target, name)] as const);
  for (const [name, property] of Object.entries(properties)) {
    Object.defineProperty(target, name, { ...property, configurable: true });
  }
  return () => {
    for (const [name, property] of before) {
      if (property) Object.defineProperty(target, name, property);
      else Reflect.deleteProperty(target, name);
    }
  };
}

function refuseHeaders(): never {
  const error = new Error('Cannot change headers after they have been sent');
  throw Object.assign(error, { code: 'ERR_HTTP_HEADERS_SENT' });
}

function discarded(): Error {
  const error = new Error('The response was replaced or aborted, so this write was discarded');
  return Object.assign(error, { code: 'ERR_STREAM_DESTROYED' });
}

function callbackIn(args: readonly unknown[]): ((error?: Error) => void) | undefined {
  return args.find((arg) => typeof arg === 'function') as ((error?: Error) => void) | undefined;
}

function sizeOf(chunk: unknown): number {
  return typeof chunk === 'string' || chunk instanceof Uint8Array ? chunk.length : 0;
}
