import type { ServerResponse } from 'node:http';
import { shownStack } from '../logging/shown-error.js';
import { logger } from '../logging/session.logger.js';
import { applyHeaders, dropResponseHeaders, type HeadersArgument } from '../resolvers/response-headers.js';

export interface CommitGate {
  readonly headersSent: boolean;
  /** The work that must be done before the headers are sent; undefined when there is none. Never throws. */
  begin(): Promise<void> | undefined;
  /**
   * Adds headers. Called when all other headers are set: the application's, or those of the error response. Called for
   * both when Node.js refuses the application's response.
   */
  complete(): void;
  passed(): void;
  replace(error: unknown): ErrorResponse;
}

export interface ErrorResponse {
  readonly status: number;
  /** The body, as JSON. */
  readonly json: string;
}

/** The functions of a Node.js response that send something. Everything that a platform sends goes through them. */
type ResponseFunctions = Pick<ServerResponse, 'writeHead' | 'write' | 'end' | 'flushHeaders'>;

/** Takes the calls of a response. */
export type ResponseFunctionsReplacer = (response: ServerResponse, hold: ResponseHold) => void;

/**
 * Replaces functions of Node.js responses. All responses of an application share them, because V8 cannot optimize
 * responses that each have their own. Each application has its own, so that one may contain another. It cannot be
 * undone: middleware that wraps the response later, such as compression, goes on calling these.
 */
export function sharedResponseFunctions(): ResponseFunctionsReplacer {
  const calls = Symbol('response calls');
  type Response = { readonly [calls]: ResponseHold };
  function writeHead(this: Response, ...args: unknown[]): ServerResponse {
    return this[calls].writeHead(args);
  }
  function write(this: Response, ...args: unknown[]): boolean {
    return this[calls].write(args);
  }
  function end(this: Response, ...args: unknown[]): ServerResponse {
    return this[calls].end(args);
  }
  function flushHeaders(this: Response): void {
    this[calls].flushHeaders();
  }
  return (response, hold) => {
    // Assigned one by one, because Object.assign() is slower. `writeHeader` is an old name in Node.js.
    const replaced = response as unknown as Record<string | symbol, unknown>;
    replaced.writeHead = writeHead;
    replaced.writeHeader = writeHead;
    replaced.write = write;
    replaced.end = end;
    replaced.flushHeaders = flushHeaders;
    replaced[calls] = hold;
  };
}

interface HeldCall {
  readonly run: () => unknown;
  readonly callback?: ((error?: Error) => void) | undefined;
}

// Far more than a source that heeds `write() === false` leaves here. A single chunk is always accepted, however large.
const MAX_HELD_BYTES = 16 * 1024 * 1024;

/**
 * Holds a response back from its first byte until the work of its gate is done. It takes the calls of `writeHead`,
 * `write`, `end` and `flushHeaders` of the Node.js response, which every platform responds through. Calls are queued in
 * the meantime and then made in their order. Informational responses (1xx) are not held.
 *
 * Without a gate, and when the gate has no work, no call is queued and none becomes asynchronous. Once the application
 * has ended a held response, further calls are as harmless as those on a response that was sent.
 */
export class ResponseHold {
  readonly #response: ServerResponse;
  readonly #original: ResponseFunctions;
  #gate: CommitGate | undefined;
  /** `open`: nothing was sent; `held`: calls are queued; `through`: calls pass; `over`: calls are discarded. */
  #state: 'open' | 'held' | 'through' | 'over' = 'open';
  #isComplete = false;
  #isEnded = false;
  readonly #calls: HeldCall[] = [];
  #heldBytes = 0;

  constructor(response: ServerResponse, replaceIn: ResponseFunctionsReplacer) {
    this.#response = response;
    const { writeHead, write, end, flushHeaders } = response;
    this.#original = { writeHead, write, end, flushHeaders };
    replaceIn(response, this);
  }

  /**
   * From now on, the response waits for a gate. Where it has begun, it does not wait: the gate then only learns whether
   * the headers were sent, or can still be added to.
   */
  waitFor(gate: CommitGate): void {
    this.#gate = gate;
    if (this.#state === 'open') return;
    void gate.begin();
    if (this.#response.headersSent) gate.passed();
  }

  writeHead(args: unknown[]): ServerResponse {
    // The other three functions of Node.js call this one when they need headers, and so do wrappers that cannot know
    // that the headers are held.
    const gate = this.#gate;
    if (!gate) this.#pass(this.#original.writeHead, args);
    else if (this.#state === 'held') {
      // On HTTP/2, Node.js ignores it.
      if (this.#isEnded && !('stream' in this.#response)) refuseHeaders.call(this.#response);
    } else if (this.#state === 'open' && !this.#isEnded) {
      this.#takeHead(args);
      this.#perform(() => this.#sendHead(gate, [this.#response.statusCode]));
      // Also after the end, where somebody who has the response before us ends it later than told.
    } else this.#sendHead(gate, args);
    return this.#response;
  }

  flushHeaders(): void {
    if (!this.#isOver) this.#pass(this.#original.flushHeaders, []);
  }

  write(args: unknown[]): boolean {
    if (this.#state === 'held' && this.#heldBytes > MAX_HELD_BYTES && !this.#isDestroyed) {
      logger.warn(
        'A response was aborted while its session was being saved: its source kept writing although write() returned false',
      );
      this.#response.destroy();
    }
    if (this.#isOver || (this.#state === 'held' && this.#isDestroyed)) {
      const callback = callbackIn(args);
      if (callback) process.nextTick(callback, this.#isEnded ? afterEnd() : discarded());
      return false;
    }
    const written = this.#pass(this.#original.write, args);
    if (this.#state === 'held') this.#heldBytes += sizeOf(args[0]);
    return written === true;
  }

  end(args: unknown[]): ServerResponse {
    if (this.#isOver) this.#endAgain(args);
    else this.#pass(this.#original.end, args);
    this.#isEnded = true;
    return this.#response;
  }

  get #isDestroyed(): boolean {
    return isDestroyed(this.#response);
  }

  get #isOver(): boolean {
    return this.#state === 'over' || (this.#state === 'held' && this.#isEnded);
  }

  #endAgain(args: unknown[]): void {
    const callback = callbackIn(args);
    if (!callback) return;
    const response = this.#response;
    if (this.#isEnded && args[0] && args[0] !== callback) process.nextTick(callback, afterEnd());
    else if (this.#isDestroyed || (this.#state === 'over' && response.writableFinished)) process.nextTick(callback);
    else response.once('finish', callback);
  }

  /** Calls a function of Node.js, or queues the call; undefined when it was queued. */
  #pass(original: (...args: never[]) => unknown, args: unknown[]): unknown {
    if (this.#state === 'through') return Reflect.apply(original, this.#response, args);
    return this.#perform(() => Reflect.apply(original, this.#response, args), args);
  }

  #perform(run: () => unknown, args: unknown[] = []): unknown {
    if (this.#state === 'open') {
      const gate = this.#gate;
      const work = gate?.begin();
      if (!gate || !work) return this.#passFirst(run);
      if (this.#isDestroyed) {
        // The client left: there is nothing to hold back, and Node.js drops what is written.
        work.catch((error: unknown) => gate.replace(error));
        return this.#passFirst(run);
      }
      this.#holdUntil(work, gate);
    }
    if (this.#state !== 'held') return run();
    this.#calls.push({ run, callback: callbackIn(args) });
    return undefined;
  }

  #passFirst(run: () => unknown): unknown {
    this.#state = 'through';
    try {
      return run();
    } finally {
      // An invalid status or header: nothing was sent, and an exception filter will respond.
      if (!(this.#gate ?? this.#response).headersSent) this.#state = 'open';
    }
  }

  #holdUntil(work: Promise<void>, gate: CommitGate): void {
    const response = this.#response;
    const { statusCode } = response;
    // Not read: on HTTP/2, that causes a warning.
    const message = Object.getOwnPropertyDescriptor(response, 'statusMessage');
    this.#state = 'held';
    const restore = this.#showAsSent();
    work.then(
      () => {
        restore();
        // A status that was set after the response was sent is not meant for this response.
        response.statusCode = statusCode;
        put(response, 'statusMessage', message);
        this.#release(gate);
      },
      (error: unknown) => {
        restore();
        this.#replace(error, gate);
      },
    );
  }

  /**
   * Makes a held response look as if it had been sent. Otherwise the exception layer of Nest would respond a second
   * time, and a late `redirect()` would change the held response.
   */
  #showAsSent(): () => void {
    const response = this.#response;
    const { destroy } = response;
    const refuse = { value: refuseHeaders };
    const isEnded = { get: () => this.#isEnded };
    return shadow(response, {
      headersSent: { get: () => true },
      writableEnded: isEnded,
      // Its old name, which Node.js assigns.
      finished: isEnded,
      // The client would lose a response that ended before.
      destroy: { value: (error?: Error) => (this.#isEnded ? response : destroy.call(response, error)) },
      writableNeedDrain: { get: () => !this.#isEnded && this.#heldBytes > 0 },
      setHeader: refuse,
      setHeaders: refuse,
      appendHeader: refuse,
      removeHeader: refuse,
    });
  }

  #release(gate: CommitGate): void {
    this.#state = 'through';
    let isFull = false;
    try {
      // If the client disconnected, Node.js drops what is written, as usual.
      for (const { run } of this.#calls.splice(0)) if (run() === false) isFull = true;
    } catch (error) {
      // Node.js refused a call, for example for an invalid status, that it would have refused when it was made.
      this.#replace(error, gate);
      return;
    }
    // `writableNeedDrain` does not help: it is true for the response of light-my-request, which never drains.
    if (!this.#isEnded && !isFull) this.#response.emit('drain');
    // Node.js would emit an error for another end() or write() until the last byte has left, which is only now.
    if (this.#isEnded) this.#state = 'over';
  }

  #replace(error: unknown, gate: CommitGate): void {
    const { status, json } = gate.replace(error);
    try {
      if (gate.headersSent) this.#response.destroy();
      else if (!this.#isDestroyed) this.#answer(gate, status, json);
    } catch (thrown) {
      // Such as a listener of another session middleware, which expects a session of its own in the request.
      logger.error(
        'A response was aborted, because what has it before the session refuses its headers',
        shownStack(thrown),
      );
      this.#response.destroy();
    }
    this.#state = 'over';
    for (const { callback } of this.#calls.splice(0)) if (callback) process.nextTick(callback, discarded());
    // Wakes a source that waits for `drain`; it then finds that the response has ended.
    if (!this.#isEnded) this.#response.emit('drain');
  }

  #answer(gate: CommitGate, status: number, body: string): void {
    const response = this.#response;
    dropResponseHeaders(response);
    // Also if Node.js refused the response after the gate had added its headers.
    this.#isComplete = false;
    // Removed, so that the default for the status applies; setting it causes a warning on HTTP/2.
    Reflect.deleteProperty(response, 'statusMessage');
    this.#state = 'through';
    applyHeaders(response, {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': Buffer.byteLength(body),
      // A source such as server-sent events may stop only when the connection ends. HTTP/2 ends the stream in any case.
      ...(!this.#isEnded && response.req.httpVersionMajor === 1 && { Connection: 'close' }),
    });
    this.#sendHead(gate, [status]);
    this.#original.end.call(response, response.req.method === 'HEAD' ? undefined : body, 'utf8');
  }

  #takeHead([status, ...rest]: unknown[]): void {
    const [reason, headers] = typeof rest[0] === 'string' ? rest : [undefined, rest[0] ?? rest[1]];
    if (headers) applyHeaders(this.#response, headers as HeadersArgument);
    this.#response.statusCode = status as number;
    if (typeof reason === 'string') this.#response.statusMessage = reason;
  }

  #sendHead(gate: CommitGate, args: unknown[]): void {
    if (!gate.headersSent) {
      this.#takeHead(args);
      if (!this.#isComplete) gate.complete();
      this.#isComplete = true;
    }
    this.#original.writeHead.call(this.#response, this.#response.statusCode);
    gate.passed();
  }
}

/** Overrides properties of an object. The function that it returns restores them. */
function shadow(target: object, properties: PropertyDescriptorMap): () => void {
  const before = Object.keys(properties).map((name) => [name, Object.getOwnPropertyDescriptor(target, name)] as const);
  for (const [name, property] of Object.entries(properties)) {
    Object.defineProperty(target, name, { ...property, configurable: true });
  }
  return () => {
    for (const [name, property] of before) put(target, name, property);
  };
}

function put(target: object, name: string, property: PropertyDescriptor | undefined): void {
  if (property) Object.defineProperty(target, name, property);
  else Reflect.deleteProperty(target, name);
}

function refuseHeaders(this: ServerResponse): never {
  const error = new Error('Cannot change headers after they have been sent');
  const code = 'stream' in this ? 'ERR_HTTP2_HEADERS_SENT' : 'ERR_HTTP_HEADERS_SENT';
  throw Object.assign(error, { code });
}

function afterEnd(): Error {
  return Object.assign(new Error('write after end'), { code: 'ERR_STREAM_WRITE_AFTER_END' });
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

/** Whether the client can no longer be reached. On HTTP/2 only the stream knows. */
export function isDestroyed(response: ServerResponse): boolean {
  const { destroyed, stream } = response as ServerResponse & { readonly stream?: { readonly destroyed: boolean } };
  return stream?.destroyed ?? destroyed;
}
