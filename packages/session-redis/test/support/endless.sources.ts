import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Observable } from 'rxjs';
import { Garbage } from './garbage.js';

const CHUNK = Buffer.alloc(16 * 1024, 'x');
const MEGABYTE = Buffer.alloc(1024 * 1024, 'x');

/** Sources of answers that go on until somebody stops them. */
@Injectable()
export class EndlessSources {
  readonly garbage = new Garbage();
  /** The names of those that have been opened and not been stopped. */
  readonly running = new Set<string>();
  /** The megabytes that the response has taken of the last flood. */
  flooded = 0;

  readable(name: string): Readable {
    this.running.add(name);
    return this.unattended(() => this.running.delete(name));
  }

  /** One that nobody has to stop: it stops when nobody reads it, and is no more than garbage then. */
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

  /** Writes by hand, heeding back pressure, until the response is closed. */
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
      // Closed while it waited.
    } finally {
      this.running.delete(name);
    }
  }

  /** Writes on without heeding back pressure, until the response is broken off or there is no end to it. */
  async flood(response: ServerResponse): Promise<void> {
    this.flooded = 0;
    for (; this.flooded < 64; this.flooded++) {
      response.write(MEGABYTE);
      if (response.destroyed) return;
      await nextTurn();
    }
  }
}
