import type { ServerResponse } from 'node:http';
import { logger } from '../logging/session.logger.js';
import { applyHeaders, dropAnswerHeaders, type HeadersArgument } from '../resolvers/response-headers.js';

/** The work that the headers of a response wait for, and what it adds to them. */
export interface CommitGate {
  /** Whether `passed()` was called. */
  readonly headersSent: boolean;
  /** The work that must be done before the headers may leave; undefined when they may leave at once. Never throws. */
  begin(): Promise<void> | undefined;
  /** Adds headers. Called once, when those of the application, or of the response that replaces its, are complete. */
  complete(): void;
  /** The headers have left. */
  passed(): void;
  /** The response that is sent in place of the application's when the work has failed. */
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

// Far beyond what a source that heeds `write() === false` leaves here; one chunk, however large, is always taken.
const MAX_HELD_BYTES = 16 * 1024 * 1024;

/**
 * Holds a response back, from the first byte that the application wants to send until the gate's work is done, by
 * standing in for `writeHead`, `write`, `end` and `flushHeaders` of the response of Node.js, through which every
 * platform answers. Calls are queued meanwhile and then repeated in their order. Informational responses (1xx) pass.
 *
 * When there is no work, nothing is queued and nothing becomes asynchronous.
 */
export class ResponseHold {
  readonly #response: ServerResponse;
  readonly #gate: CommitGate;
  readonly #original: Pick<ServerResponse, 'writeHead' | 'write' | 'end' | 'flushHeaders'>;
  /** `open`: nothing was sent; `held`: calls are queued; `through`: calls pass; `replaced`: an error was answered. */
  #state: 'open' | 'held' | 'through' | 'replaced' = 'open';
  #isComplete = false;
  #isEnded = false;
  #calls: HeldCall[] = [];
  #heldBytes = 0;

  /**
   * From now on the response waits for the gate. There is no way back: middleware that wraps the response after us, such
   * as compression, keeps calling these functions to the end.
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
    // Node.js itself comes here from the other three when they need a head, and so do wrappers that cannot know that the
    // head is held.
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
      logger.warn('A response was broken off: its source kept writing while the save of the session was waited for');
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

  /** Whether nothing can reach the client any more. On HTTP/2 only the stream says so. */
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
      // An invalid status or header: nothing was sent, and an exception filter will answer.
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
        // Whoever set a status after having answered did not mean this answer.
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
   * Lets the application see a response that has been sent as far as it has sent it: or the exception layer of Nest
   * would answer a second time, and a late `redirect()` would change the answer that is held.
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
      // A client that has left: Node.js drops what is written, as ever.
      for (const { run } of this.#calls.splice(0)) if (run() === false) isFull = true;
    } catch (error) {
      // What Node.js would have refused in the call itself, such as an invalid status.
      this.#replace(error);
      return;
    }
    // Not asked of `writableNeedDrain`: the response of light-my-request, which never drains, says true.
    if (!this.#isEnded && !isFull) this.#response.emit('drain');
  }

  #replace(error: unknown): void {
    const { status, body } = this.#gate.replace(error);
    if (this.#gate.headersSent) this.#response.destroy();
    else if (!this.#isDestroyed) this.#answer(status, JSON.stringify(body));
    this.#state = 'replaced';
    for (const { callback } of this.#calls.splice(0)) if (callback) process.nextTick(callback, discarded());
    // Wakes a source that waits; the end of this response then tells it that it has nowhere to go.
    if (!this.#isEnded) this.#response.emit('drain');
  }

  #answer(status: number, body: string): void {
    const response = this.#response;
    dropAnswerHeaders(response);
    // Its default belongs to the status; setting it would be a warning on HTTP/2.
    Reflect.deleteProperty(response, 'statusMessage');
    this.#state = 'through';
    applyHeaders(response, {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': Buffer.byteLength(body),
      // A source that goes on, such as that of server-sent events, may listen to nothing but the end of the connection.
      // HTTP/2 ends the stream in any case.
      ...(!this.#isEnded && response.req.httpVersionMajor === 1 && { Connection: 'close' }),
    });
    this.#sendHead([status]);
    this.#original.end.call(response, response.req.method === 'HEAD' ? undefined : body, 'utf8');
  }

  /** Takes over what was given to `writeHead()`: there, headers replace all others of their name, and so ours. */
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

/** Puts properties in front of an object's own and inherited ones. The function takes them away again. */
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
  const error = new Error('Nobody reads this response any more');
  return Object.assign(error, { code: 'ERR_STREAM_DESTROYED' });
}

function callbackIn(args: readonly unknown[]): ((error?: Error) => void) | undefined {
  return args.find((arg) => typeof arg === 'function') as ((error?: Error) => void) | undefined;
}

function sizeOf(chunk: unknown): number {
  return typeof chunk === 'string' || chunk instanceof Uint8Array ? chunk.length : 0;
}
