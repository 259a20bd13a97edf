import { Session } from 'node:inspector';

/** Tells which sources of the packages of this repository run in a span of time, by the counts of V8. */
export class SourceCoverage {
  readonly #session = new Session();

  constructor() {
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  }

  /** The sources with a function that was called since the last call of this method, as paths in `packages`. */
  take(): string[] {
    let sources: string[] = [];
    // In the same process, the reply comes before `post()` returns.
    this.#session.post('Profiler.takePreciseCoverage', (_, { result }) => {
      const run = result.filter(({ functions }) =>
        functions.some(({ ranges }) => ranges.some(({ count }) => count > 0)),
      );
      sources = run.map(({ url }) => SOURCE.exec(url)?.[1]).filter((path) => path !== undefined);
    });
    return sources.sort();
  }

  stop(): void {
    this.#session.disconnect();
  }
}

const SOURCE = /\/packages\/([^/]+\/src\/.+\.ts)$/;
