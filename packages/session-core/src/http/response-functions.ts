import type { ServerResponse } from 'node:http';

/** The functions of a Node.js response that send something. Everything that a platform sends goes through them. */
export type ResponseFunctions = Pick<ServerResponse, 'writeHead' | 'write' | 'end' | 'flushHeaders'>;

/** Takes the calls of the functions of one response. */
export interface ResponseCalls {
  writeHead(args: unknown[]): ServerResponse;
  write(args: unknown[]): boolean;
  end(args: unknown[]): ServerResponse;
  flushHeaders(): void;
}

/**
 * Functions that replace those of Node.js responses. All responses of an application share them, because V8 cannot
 * optimize responses that each have their own. Each application has its own, so that one may contain another.
 */
export class SharedResponseFunctions {
  readonly #functions: ResponseFunctions & { readonly writeHeader: ServerResponse['writeHead'] };
  readonly #calls: symbol;

  constructor() {
    const calls = Symbol('response calls');
    type Response = { readonly [calls]: ResponseCalls };
    this.#calls = calls;
    function writeHead(this: Response, ...args: unknown[]): ServerResponse {
      return this[calls].writeHead(args);
    }
    this.#functions = {
      writeHead,
      // Its old name in Node.js.
      writeHeader: writeHead,
      write(this: Response, ...args: unknown[]): boolean {
        return this[calls].write(args);
      },
      end(this: Response, ...args: unknown[]): ServerResponse {
        return this[calls].end(args);
      },
      flushHeaders(this: Response): void {
        this[calls].flushHeaders();
      },
    };
  }

  /**
   * Replaces the functions of a response. It cannot be undone: middleware that wraps the response later, such as
   * compression, calls these functions until the end.
   */
  replaceIn(response: ServerResponse, calls: ResponseCalls): void {
    const { writeHead, writeHeader, write, end, flushHeaders } = this.#functions;
    // Assigned one by one, because Object.assign() is slower.
    const replaced = response as ResponseFunctions as ResponseFunctions & {
      writeHeader: unknown;
      [calls: symbol]: unknown;
    };
    replaced.writeHead = writeHead;
    replaced.writeHeader = writeHeader;
    replaced.write = write;
    replaced.end = end;
    replaced.flushHeaders = flushHeaders;
    replaced[this.#calls] = calls;
  }
}

/** Whether the client can no longer be reached. On HTTP/2 only the stream knows. */
export function isDestroyed(response: ServerResponse): boolean {
  const { destroyed, stream } = response as ServerResponse & { readonly stream?: { readonly destroyed: boolean } };
  return stream?.destroyed ?? destroyed;
}
