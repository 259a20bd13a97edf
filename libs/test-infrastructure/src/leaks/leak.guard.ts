import { type AsyncHook, createHook, executionAsyncResource } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import {
  describeResource,
  isEnded,
  isPendingTimer,
  isReferenced,
  isTracked,
  type Resource,
} from './tracked-resource.js';

interface Tracked {
  readonly type: string;
  /** Node keeps what is open. */
  readonly resource: WeakRef<Resource>;
}

interface Open {
  readonly type: string;
  readonly resource: Resource;
  readonly origin: Origin;
}

/** The place where a resource was created. */
interface Origin {
  readonly trace: Error;
  /** The place that caused it, when that was in another turn of the event loop. */
  readonly cause: Origin | undefined;
}

interface Detour {
  /** What a tick calls. */
  readonly callback?: { readonly name: string };
}

/** Node creates the handle of a server a turn or two after `listen()`, when it has looked up the address. */
function isDetour(type: string, { callback }: Detour): boolean {
  // There are many other ticks, and a trace takes microseconds.
  return type === 'GETADDRINFOREQWRAP' || (type === 'TickObject' && /listen/i.test(callback?.name ?? ''));
}

const LONGEST_DETOUR = 4;

// Longer than the 2 s that ioredis keeps a timer after disconnect() of a client whose connection was lost.
const GRACE = 3_000;
const HOOK_TIMEOUT = 60_000;
const CHECK_INTERVAL = 10;
const TRACE_DEPTH = 25;
const SHOWN_FRAMES = 8;
/** So many resources are remembered before those that have ended are forgotten. */
const FEW = 1_000;

/**
 * Finds connections, servers, timers and child processes that were created after `start()` and would keep the process
 * from ending, and timers of the packages that would not. It ignores other unreferenced ones and those of Jest. It
 * costs time on every promise while it runs, so keep it out of measurements.
 */
export class LeakGuard {
  readonly #hook: AsyncHook;
  #tracked: Tracked[] = [];
  #forgetAt = FEW;
  /** A trace holds on to what its functions worked on, so it goes together with its resource. */
  #origins = new WeakMap<Resource, Origin>();
  #detours = new WeakMap<object, Origin>();
  #isPaused = false;

  constructor() {
    // Without `destroy`: for that, Node.js would watch how every promise is collected.
    this.#hook = createHook({
      init: (_id, type, _trigger, resource) => {
        // Most are promises.
        if (type === 'PROMISE') return;
        if (isDetour(type, resource)) this.#detours.set(resource, this.#originHere());
        else if (isTracked(type, resource) && !this.#isPaused) this.#track(type, resource);
      },
    });
  }

  /**
   * Fails the test file when a resource is left after its last `afterAll`. Call it at the top level of the file, before
   * any top-level `await`. `grace`: as of `check()`.
   */
  static install(options: { readonly grace?: number } = {}): LeakGuard {
    const guard = new LeakGuard();
    guard.start();
    const { afterAll } = globalThis as { readonly afterAll?: (hook: () => Promise<void>, timeout: number) => void };
    if (!afterAll) throw new Error('LeakGuard.install() needs Jest; elsewhere use start() and check()');
    // Jest runs hooks in the order of their definition: this one must come after those that close things. When the
    // microtask runs, the file has defined all of its own and Jest has not started yet.
    queueMicrotask(() => {
      afterAll(async () => {
        try {
          await guard.check(options);
        } finally {
          guard.stop();
        }
      }, HOOK_TIMEOUT);
    });
    return guard;
  }

  /** Tracks every resource that is created from now on. */
  start(): void {
    this.#hook.enable();
  }

  /** Stops tracking, and forgets all tracked resources. */
  stop(): void {
    this.#hook.disable();
    this.#tracked = [];
    this.#origins = new WeakMap();
    this.#detours = new WeakMap();
  }

  /**
   * Resolves as soon as nothing is left.
   * @throws Error that lists the resources left after `grace` (default 3000) milliseconds, and where they were created
   */
  async check({ grace = GRACE }: { readonly grace?: number } = {}): Promise<void> {
    // Counted in rounds, not by the clock: while the process is suspended, nothing can close.
    for (let left = grace; ; left -= CHECK_INTERVAL) {
      const open = this.#left();
      if (open.length === 0) return;
      if (left <= 0) throw new Error(report(open));
      await this.#pause();
    }
  }

  #track(type: string, resource: Resource): void {
    this.#tracked.push({ type, resource: new WeakRef(resource) });
    this.#origins.set(resource, this.#originHere());
    if (this.#tracked.length < this.#forgetAt) return;
    this.#tracked = this.#tracked.filter(({ resource: each }) => !isEnded(each.deref()));
    this.#forgetAt = FEW + 2 * this.#tracked.length;
  }

  #left(): Open[] {
    const open = this.#tracked.flatMap(({ type, resource }) => {
      const kept = resource.deref();
      return kept ? [{ type, resource: kept, origin: this.#origins.get(kept)! }] : [];
    });
    return open.filter(({ type, resource, origin }) =>
      isReferenced(resource) ? !isOfJest(origin) : isPendingTimer(type, resource) && isOfPackage(origin),
    );
  }

  #originHere(): Origin {
    return { trace: traceHere(), cause: shortened(this.#detours.get(executionAsyncResource()), LONGEST_DETOUR) };
  }

  async #pause(): Promise<void> {
    this.#isPaused = true;
    const timer = delay(CHECK_INTERVAL);
    this.#isPaused = false;
    await timer;
  }
}

function traceHere(): Error {
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = TRACE_DEPTH;
  const trace = new Error();
  Error.stackTraceLimit = before;
  return trace;
}

/** A chain of causes that cannot grow for ever. */
function shortened(origin: Origin | undefined, length: number): Origin | undefined {
  if (!origin || length === 0) return undefined;
  return { trace: origin.trace, cause: shortened(origin.cause, length - 1) };
}

/** The frames outside of Node.js and of this guard, innermost first. */
function frames({ trace, cause }: Origin): string[] {
  const own = (trace.stack ?? '')
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
    .filter((line) => !/[( ]node:|\(<anonymous>\)|[\\/]leak\.guard\.[jt]s/.test(line));
  return own.length > 0 || !cause ? own : frames(cause);
}

function isJestFrame(frame: string): boolean {
  return /[\\/]node_modules[\\/](jest-|@jest[\\/])/.test(frame);
}

/** Such as the timers of its test timeouts. What a test creates has Jest's frames too, but not as the innermost. */
function isOfJest(origin: Origin): boolean {
  const [innermost] = frames(origin);
  return innermost !== undefined && isJestFrame(innermost);
}

/** A timer that a package has forgotten runs for as long as the process, also where it does not keep it alive. */
function isOfPackage(origin: Origin): boolean {
  const [innermost = ''] = frames(origin);
  return /[\\/]packages[\\/]session-[\w-]+[\\/]src[\\/]/.test(innermost);
}

function report(left: readonly Open[]): string {
  const items = left.map(({ type, resource, origin }, index) => {
    const shown = frames(origin).filter((frame) => !isJestFrame(frame));
    // Not "at": Jest takes such lines out of the message and puts them under it, all in one heap.
    const lines =
      shown.length > 0
        ? shown.slice(0, SHOWN_FRAMES).map((frame) => frame.replace(/^at /, 'by '))
        : ['created by Node itself'];
    return [`${index + 1}. ${describeResource(type, resource)}`, ...lines.map((line) => `     ${line}`)].join('\n');
  });
  return `Left behind and still open:\n\n${items.join('\n\n')}`;
}
