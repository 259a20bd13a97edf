import { Session } from 'node:inspector';

/** A source that ran, as a path in `packages`, with the functions of it that were called: their place in its text. */
export type SourcesRun = ReadonlyMap<string, readonly number[]>;

/** Tells which sources of the packages of this repository run in a span of time, by the counts of V8. */
export class SourceCoverage {
  readonly #session = new Session();

  constructor() {
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  }

  /** The sources with a function that was called since the last call of this method. */
  take(): SourcesRun {
    const sources = new Map<string, readonly number[]>();
    // In the same process, the reply comes before `post()` returns.
    this.#session.post('Profiler.takePreciseCoverage', (_, { result }) => {
      for (const { url, functions } of result) {
        const path = SOURCE.exec(url)?.[1];
        const called = functions.flatMap(({ ranges: [range] }) => (range!.count > 0 ? [range!.startOffset] : []));
        if (path !== undefined && called.length > 0) sources.set(path, called);
      }
    });
    return sources;
  }

  stop(): void {
    this.#session.disconnect();
  }
}

const SOURCE = /\/packages\/([^/]+\/src\/.+\.ts)$/;
