import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Observable } from 'rxjs';
import { Garbage } from './garbage.js';

const CHUNK = Buffer.alloc(16 * 1024, 'x');
const MEGABYTE = Buffer.alloc(1024 * 1024, 'x');

/** Sources of responses that run until they are stopped. */
@Injectable()
export class EndlessSources {
  readonly garbage = new Garbage();
  /** The names of the sources that run. */
  readonly running = new Set<string>();
  /** The megabytes of the last flood that the response accepted. */
  flooded = 0;

  readable(name: string): Readable {
    this.running.add(name);
    return this.unattended(() => this.running.delete(name));
  }

  /** A source that needs no stop: without a reader it is garbage. */
  unattended(onStop: () => void = () => {}): Readable {
    const source: Readable = new Readable({
      read: () => void setImmediate(() => source.push(CHUNK)),
      destroy: (error, done) => {
        onStop();
        done(error);
      },
    });
    this.garbage.watch('source', source);
    return source;
  }

  async *generator(name: string): AsyncGenerator<Buffer> {
    this.running.add(name);
    try {
      for (;;) {
        yield CHUNK;
        await nextTurn();
      }
    } finally {
      this.running.delete(name);
    }
  }

  observable(name: string): Observable<{ data: string }> {
    return new Observable((subscriber) => {
      this.running.add(name);
      this.garbage.watch('subscriber', subscriber);
      const timer = setInterval(() => subscriber.next({ data: name }), 5);
      return () => {
        clearInterval(timer);
        this.running.delete(name);
      };
    });
  }

  /** Writes by hand, with respect for back pressure, until the response is closed. */
  async writes(name: string, response: ServerResponse): Promise<void> {
    this.running.add(name);
    const closed = new AbortController();
    response.once('close', () => closed.abort());
    try {
      while (!response.destroyed) {
        if (!response.write(CHUNK)) await once(response, 'drain', { signal: closed.signal });
        await nextTurn();
      }
    } catch {
      // The response was closed during the wait.
    } finally {
      this.running.delete(name);
    }
  }

  /** Writes without respect for back pressure, until the response is aborted or the limit is reached. */
  async flood(response: ServerResponse): Promise<void> {
    this.flooded = 0;
    for (; this.flooded < 64; this.flooded++) {
      response.write(MEGABYTE);
      if (response.destroyed) return;
      await nextTurn();
    }
  }
}
