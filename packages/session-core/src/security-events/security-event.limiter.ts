import { SecurityEvent, type SecurityEventKind, type SecurityFacts } from './security-event.js';

const WINDOW = 1000;
// Of one kind. More clients than that share one entry.
const MOST_SOURCES = 100;

/** Where events come from that count as the same. */
interface Source {
  latest: SecurityFacts & { readonly at: number };
  /** How many were not delivered yet. */
  waiting: number;
}

/**
 * Lets the first event of a client through, and then about one per second that stands for all others. So an attack costs
 * the handlers little, and they can still count each event. Of one kind, 100 clients are told apart at a time.
 */
export class SecurityEventLimiter {
  readonly #sources = new Map<SecurityEventKind, Map<string, Source>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly deliver: (event: SecurityEvent) => void) {}

  add(kind: SecurityEventKind, facts: SecurityFacts): void {
    const sources = this.#sources.get(kind) ?? new Map<string, Source>();
    this.#sources.set(kind, sources);
    const own = [facts.limit, facts.remoteAddress, facts.principalName].join('\n');
    const isOne = sources.has(own) || sources.size < MOST_SOURCES;
    const key = isOne ? own : 'others';
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

  /** Delivers what waits. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [kind, sources] of this.#sources) {
      for (const [key, source] of sources) {
        if (source.waiting === 0) sources.delete(key);
        else this.deliver(new SecurityEvent(kind, { ...source.latest, suppressed: source.waiting - 1 }));
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

/** Of several clients, none must be blamed for all. */
function anonymous({ method, path, reason, limit }: SecurityFacts): SecurityFacts {
  return { method, path, reason, limit };
}
