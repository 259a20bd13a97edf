import type { CommandCall } from '../command/command.js';
import type { OpenStore, ReachedRedis } from '../command/store-access.js';
import type { ExaminedNode } from './examined-node.js';

/** What a check has found. */
export interface Diagnosis {
  readonly status: 'ok' | 'warning' | 'error';
  readonly message: string;
  /** What to do. */
  readonly advice?: string;
}

/** What the checks look at. */
export interface Examined {
  readonly call: CommandCall;
  readonly redis: ReachedRedis;
  /** Each server, once. */
  readonly nodes: readonly ExaminedNode[];
  /** Undefined: the namespace cannot be used, and the check of the format says why. */
  readonly store: OpenStore | undefined;
  /** Why it cannot be used. */
  readonly storeProblem: Error | undefined;
}

/** Looks at one thing. It changes nothing in Redis. Several findings: of several nodes or groups. */
export interface Check {
  /** Whether it looks at what applications keep, and so needs the store. */
  readonly ofStore?: boolean;
  look(examined: Examined): Promise<readonly Diagnosis[]> | readonly Diagnosis[];
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

/** Where to read more. */
export function seePage(title: string): string {
  return `See the page ${JSON.stringify(title)} of the documentation.`;
}

/** The findings, or that there are none. */
export function orOk(findings: readonly Diagnosis[], message: string): readonly Diagnosis[] {
  return findings.length > 0 ? findings : [ok(message)];
}
