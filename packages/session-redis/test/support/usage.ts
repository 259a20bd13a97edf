import type { EventEmitter } from 'node:events';

/** The number of resources of each kind. */
export type Usage = ReadonlyMap<string, number>;

/** The active resources of this process, and the listeners of some emitters. */
export function usageOf(emitters: Readonly<Record<string, EventEmitter>>): Usage {
  const usage = new Map<string, number>();
  for (const type of process.getActiveResourcesInfo()) usage.set(type, (usage.get(type) ?? 0) + 1);
  for (const [name, emitter] of Object.entries(emitters)) {
    for (const event of emitter.eventNames()) usage.set(`${name} ${String(event)}`, emitter.listenerCount(event));
  }
  return usage;
}

/** The kinds of which there are more than before, with the difference. */
export function excess(now: Usage, before: Usage): Record<string, number> {
  const more = [...now].map(([name, count]) => [name, count - (before.get(name) ?? 0)] as const);
  return Object.fromEntries(more.filter(([, count]) => count > 0));
}
