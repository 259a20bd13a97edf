import type { HeardSignals } from '../delivery/partition-turns.js';
import { FailureLog } from '../logging/failure.log.js';
import type { PartitionKeys } from '../partitions/partitions.js';
import { type BackgroundService, RETRY } from '../timing/background-service.js';
import { type DueList, reportLate, SweepCounter } from './due.sweeper.js';

// Milliseconds between two looks at a partition, however often something is due there.
const SHORTEST_WAIT = 100;
// Nothing becomes due sooner after it was noted.
const LONGEST_WAIT = 1000;
// Signals tell of every end before that: see scripts/library/signal-end.lua.
const LONGEST_WAIT_WITH_SIGNALS = 60_000;

interface Look<Keys> {
  readonly keys: Keys;
  begun: number;
  /** When to look again at the latest; earlier where no signal would tell of what was noted meanwhile. */
  next: number;
  /** Whether the last look failed, and nothing has shown since then that Redis is sound. */
  isFailing: boolean;
  running: Promise<void> | undefined;
}

/** Looks at the due list of each partition when its next entry is due, and claims what is, as others may. */
export class DuePoller<Keys extends PartitionKeys> implements BackgroundService {
  readonly #looks: ReadonlyMap<PartitionKeys, Look<Keys>>;
  readonly #stopping = new AbortController();
  readonly #failures: FailureLog;
  readonly #failing = new Set<Keys>();
  #isActive = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly what: string,
    private readonly list: DueList<Keys>,
    partitions: readonly Keys[],
    private readonly signals: HeardSignals,
  ) {
    const search = `The search for ${what} that are due`;
    this.#failures = new FailureLog(`${search} failed and will run again`, `${search} works again`);
    const look = { begun: -Infinity, next: 0, isFailing: false, running: undefined };
    this.#looks = new Map(partitions.map((keys) => [keys, { ...look, keys }]));
  }

  start(): void {
    this.#isActive = true;
    this.signals.onSignal((keys, signal) => {
      if (signal === 'missed') this.hurry(keys, 0);
      else if (signal.startsWith('end ')) this.hurry(keys, Number(signal.slice('end '.length)) + 1);
    });
    this.#schedule();
  }

  async stop(): Promise<void> {
    this.#isActive = false;
    this.#stopping.abort();
    clearTimeout(this.#timer);
    await Promise.all([...this.#looks.values()].map(async ({ running }) => running));
  }

  /** Looks at a partition within `wait` milliseconds. Something was noted there: its node writes. */
  hurry(keys: PartitionKeys, wait: number): void {
    const look = this.#looks.get(keys);
    const at = performance.now() + wait;
    if (!look || (at >= look.next && !look.isFailing)) return;
    look.next = look.isFailing ? 0 : at;
    look.isFailing = false;
    this.#schedule();
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (!this.#isActive) return;
    const waiting = [...this.#looks.values()].filter(({ running }) => !running);
    const next = Math.min(...waiting.map((look) => this.#dueAt(look)));
    // Signals may not be heard any more by then.
    const wait = Math.min(LONGEST_WAIT, Math.max(0, next - performance.now()));
    this.#timer = setTimeout(() => this.#lookAtDue(), wait).unref();
  }

  #lookAtDue(): void {
    const now = performance.now();
    for (const look of this.#looks.values()) {
      if (look.running || this.#dueAt(look) > now) continue;
      look.running = this.#look(look).finally(() => {
        look.running = undefined;
        this.#schedule();
      });
    }
    this.#schedule();
  }

  #dueAt({ keys, begun, next, isFailing }: Look<Keys>): number {
    if (isFailing) return begun + RETRY;
    const longest = this.signals.heardSince(keys) <= begun ? LONGEST_WAIT_WITH_SIGNALS : LONGEST_WAIT;
    return Math.max(Math.min(next, begun + longest), begun + SHORTEST_WAIT);
  }

  async #look(look: Look<Keys>): Promise<void> {
    const tally = new SweepCounter(false);
    const { signal } = this.#stopping;
    look.begun = performance.now();
    // Signals during the look bring the next one forward.
    look.next = Infinity;
    try {
      const next = await this.list.claimIn(look.keys, tally, { signal });
      if (next !== undefined) look.next = Math.min(look.next, performance.now() + next);
      this.#failing.delete(look.keys);
      // While one partition fails, the others still succeed.
      if (this.#failing.size === 0) this.#failures.succeeded();
      tally.report(signal);
      reportLate(this.what, tally.result.late);
    } catch (error) {
      look.isFailing = true;
      this.#failing.add(look.keys);
      if (!signal.aborted) this.#failures.failed(error);
    }
  }
}
