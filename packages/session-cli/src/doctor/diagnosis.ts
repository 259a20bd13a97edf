import type { CommandCall } from '../command/command.js';
import type { OpenStore, ReachedRedis } from '../command/store-access.js';
import type { ExaminedNode } from './examined-node.js';

export const CHECK_NAMES = [
  'server',
  'format',
  'rights',
  'clock',
  'latency',
  'memory',
  'clients',
  'persistence',
  'notifications',
  'instances',
  'cleanup',
  'overdue',
  'groups',
  'dead-letters',
] as const;

export type CheckName = (typeof CHECK_NAMES)[number];

export interface Diagnosis {
  readonly status: 'ok' | 'warning' | 'error';
  readonly message: string;
  readonly advice?: string;
}

export interface Examined {
  readonly call: CommandCall;
  readonly redis: ReachedRedis;
  readonly nodes: readonly ExaminedNode[];
  /** Why the namespace cannot be used, if it cannot: the check of the format says so. */
  readonly store: OpenStore | Error;
}

type Findings = readonly Diagnosis[] | Promise<readonly Diagnosis[]>;

/** Looks at one thing. It changes nothing in Redis. Several findings: of several nodes or groups. */
export type Check = (examined: Examined) => Findings;

/** A check of what applications keep: it finds nothing where the namespace cannot be used. */
export function ofStore(look: (store: OpenStore, examined: Examined) => Findings): Check {
  return (examined) => (examined.store instanceof Error ? [] : look(examined.store, examined));
}

export function ofNodes(look: (node: ExaminedNode, examined: Examined) => Iterable<Diagnosis>): Check {
  return (examined) => examined.nodes.flatMap((node) => [...look(node, examined)]);
}

export function ok(message: string): Diagnosis {
  return { status: 'ok', message };
}

export function warning(message: string, advice: string): Diagnosis {
  return { status: 'warning', message, advice };
}

export function error(message: string, advice: string): Diagnosis {
  return { status: 'error', message, advice };
}

export function seePage(title: string): string {
  return `See the page ${JSON.stringify(title)} of the documentation.`;
}

export function orOk(findings: readonly Diagnosis[], message: string): readonly Diagnosis[] {
  return findings.length > 0 ? findings : [ok(message)];
}
