import { holderOf } from './network-of.js';
import { SecurityEvent, type SecurityEventKind, type SecurityFacts } from './security-event.js';

const WINDOW = 1000;
// The number of sources per kind. Further clients share one entry. A handler that takes its time can still hear of all.
const MOST_SOURCES = 500;
const OTHERS = 'others';

/** The source of events that are counted together. */
interface Source {
  latest: SecurityFacts & { readonly at: number };
  /** How many of its events were not delivered yet. */
  waiting: number;
}

/**
 * Delivers the first event of a client, and then about one per second that stands for all others. An attack costs the
 * handlers little, and they can still count every event. For each kind, it tells 500 clients apart at a time.
 */
export class SecurityEventLimiter {
  readonly #sources = new Map<SecurityEventKind, Map<string, Source>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly deliver: (event: SecurityEvent) => void) {}

  add(kind: SecurityEventKind, facts: SecurityFacts): void {
    const sources = this.#sources.get(kind) ?? new Map<string, Source>();
    this.#sources.set(kind, sources);
    const own = [facts.limit, holderOf(facts.remoteAddress), facts.principalName].join('\n');
    const isOne = sources.has(own) || sources.size < MOST_SOURCES;
    const key = isOne ? own : OTHERS;
    const latest = { ...(isOne ? facts : anonymous(facts)), at: Date.now() };
    const source = sources.get(key);
    if (source) {
      source.latest = latest;
      source.waiting++;
      return;
    }
    sources.set(key, { latest, waiting: 0 });
    this.#wait();
    this.deliver(new SecurityEvent(kind, latest));
  }

  /** Delivers the waiting events. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [kind, sources] of this.#sources) {
      // Otherwise those who came first could hide all others for as long as they like.
      const isFull = sources.has(OTHERS);
      for (const [key, source] of sources) {
        if (source.waiting === 0 || isFull) sources.delete(key);
        if (source.waiting > 0)
          this.deliver(new SecurityEvent(kind, { ...source.latest, suppressed: source.waiting - 1 }));
        source.waiting = 0;
      }
      if (sources.size === 0) this.#sources.delete(kind);
    }
  }

  #wait(): void {
    this.#timer ??= setTimeout(() => {
      this.flush();
      if (this.#sources.size > 0) this.#wait();
    }, WINDOW).unref();
  }
}

/** Leaves out who it was: an event that stands for several clients must not blame one of them. */
function anonymous({ method, path, reason, limit }: SecurityFacts): SecurityFacts {
  return { method, path, reason, limit };
}
