import { SessionIds } from '@nest-session/core/internal';
import { lookAtSpring, SpringKeys, type SpringLook, type SpringRule } from '@nest-session/spring/internal';
import { Pace } from '@nest-session/redis-events/internal';
import type { CommandCall, ExitCode } from './command.js';
import { exitCodeOfFindings } from './shown-findings.js';
import { springReport } from './spring-report.js';
import { type ReachedRedis, withRedis } from './store-access.js';
import { UsageError } from './usage.error.js';
import { wholeNumber } from './whole-number.js';

const NAMESPACE = 'spring:session';
const RATE = '20000';
const SAMPLE = '100';

/** Looks at the sessions of Spring Session. */
export function run(call: CommandCall): Promise<ExitCode> {
  const { sample = SAMPLE, rate = RATE } = call.values;
  const size = wholeNumber('sample', sample, { atLeast: 1, atMost: 10_000 });
  const pace = new Pace(wholeNumber('rate', rate, { atLeast: 1 }), call.signal);
  const repair = call.flags.has('repair');
  const address = { ...call.address, namespace: call.address.namespace ?? NAMESPACE };
  return withRedis({ ...call, address }, (redis) => look(redis, call, { repair, sample: size, pace }), 'read');
}

/** Rules whose examples are ids. */
const OF_IDS: ReadonlySet<SpringRule> = new Set([
  'bucket-member-without-session',
  'expiration-without-session',
  'incomplete-session',
  'index-member-without-session',
]);

interface LookOptions {
  readonly repair: boolean;
  readonly sample: number;
  readonly pace: Pace;
}

async function look(
  { connections: { background: client }, options: { namespace } }: ReachedRedis,
  { output }: CommandCall,
  { repair, sample, pace }: LookOptions,
): Promise<ExitCode> {
  const holds = await client.hget(`${namespace}:meta`, 'holds');
  if (holds !== null) {
    const others = holds === 'shared-sessions' ? 'doctor and stats' : 'verify and stats';
    throw new UsageError(`Namespace ${JSON.stringify(namespace)} is one of nest-session. Use ${others} for it.`);
  }
  const keys = new SpringKeys(namespace);
  const onProgress = (looked: number) => output.progress(`${looked} keys and entries`);
  const pass = (mends: boolean) => lookAtSpring(client, keys, { mends, sample, pace, onProgress });
  const first = await pass(repair);
  if (first.overview.sessions.found === 0 && first.findings.length === 0) {
    output.note(`There is no session of Spring in namespace ${JSON.stringify(namespace)}.`);
    return 1;
  }
  const second = repair && first.findings.length > 0 ? await pass(false) : undefined;
  const found = { findings: shownOf(first), left: second ? shownOf(second) : [] };
  output.report(...springReport(first, { ...found, repair, looked: pace.passed }));
  return exitCodeOfFindings(found, repair);
}

/** The ids are tokens. */
function shownOf({ findings }: SpringLook): SpringLook['findings'] {
  const ids = new SessionIds(undefined, 'plain');
  return findings.map(({ rule, count, examples }) => {
    return { rule, count, examples: OF_IDS.has(rule) ? examples.map((id) => ids.shown(id)) : examples };
  });
}
