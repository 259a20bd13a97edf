import type { Redis } from 'ioredis';
import {
  keepingRules,
  type ResolvedRedisSessionOptions,
  type SessionPartitions,
  SessionScripts,
} from '@nest-session/redis/internal';
import { DeadlinePartitions, DeadlineScripts } from '@nest-session/deadlines/redis/internal';
import { type Finding, FindingCounter, Pace } from '@nest-session/redis-events/internal';
import { type Rule, VerificationScripts } from '../scripts/verification/verification.scripts.js';
import { deadlineKinds } from './deadline-kinds.js';
import { eventKinds } from './event-kinds.js';
import { sessionKinds } from './session-kinds.js';
import { VerificationRun } from './verification-run.js';

/** How a namespace is verified. */
export interface VerifyOptions {
  /** Mends what it finds. @default false */
  readonly repair?: boolean;
  /** Keys and members in a second at most. @default 20,000 */
  readonly rate?: number;
  readonly signal?: AbortSignal | undefined;
  /** Receives how many keys and members have been looked at, from time to time. */
  readonly onProgress?: (looked: number) => void;
}

/** What `verify()` has found. */
export interface Verification {
  /** Ordered by rule; what was mended is among them. */
  readonly findings: readonly Finding<Rule>[];
  /** What is left after it was mended; empty unless `repair` was asked for. */
  readonly left: readonly Finding<Rule>[];
  /** The number of keys and members that were looked at. */
  readonly looked: number;
}

/** The store that is verified. */
export interface VerifiedStore {
  readonly client: Redis;
  readonly partitions: SessionPartitions | DeadlinePartitions;
  /** How long data is kept that is mended. */
  readonly options: Pick<ResolvedRedisSessionOptions, 'grace' | 'events' | 'expirations'>;
}

const RATE = 20_000;
// Mending one thing can show another: a stray key hid what it stood for.
const MOST_PASSES = 5;

/**
 * Looks for what breaks a rule of the data model, beside the applications that use the namespace. It changes nothing
 * unless `repair` is asked for.
 */
export async function verify(
  store: VerifiedStore,
  { repair = false, rate = RATE, signal, onProgress = () => undefined }: VerifyOptions = {},
): Promise<Verification> {
  const pace = new Pace(rate, signal);
  const pass = (mends: boolean) => verifyOnce(store, pace, mends, () => onProgress(pace.passed));
  const findings = await pass(repair);
  let left = repair && findings.length > 0 ? await pass(true) : [];
  for (let i = 2; i < MOST_PASSES && left.length > 0; i++) left = await pass(true);
  return { findings, left, looked: pace.passed };
}

async function verifyOnce(
  { client, options, partitions }: VerifiedStore,
  pace: Pace,
  mends: boolean,
  onProgress: () => void,
): Promise<Finding<Rule>[]> {
  const scripts = new VerificationScripts(client, mends);
  const counter = new FindingCounter<Rule>();
  const tell: Parameters<VerificationRun<never>['run']>[0] = (problems) => {
    counter.add(problems);
    onProgress();
  };
  const ofEvents = eventKinds(client, scripts);
  if (partitions instanceof DeadlinePartitions) {
    const moves = mends ? new DeadlineScripts(client) : undefined;
    const kinds = [...ofEvents, ...deadlineKinds({ client, partitions, scripts, moves })];
    await new VerificationRun(client, partitions, kinds, scripts, pace).run(tell);
  } else {
    const { grace, events } = options;
    const claims = mends ? new SessionScripts(client, partitions, keepingRules(options, partitions)) : undefined;
    const rules = { grace, retention: events.retention };
    const kinds = [...ofEvents, ...sessionKinds({ client, partitions, scripts, claims, rules })];
    await new VerificationRun(client, partitions, kinds, scripts, pace).run(tell);
  }
  return counter.all;
}
