import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { eventually, RedisServer } from '@nest-session/testing';
import { isQuick, writeResults } from './results.js';
import { comparisonsOf, type SoakFindings } from './soak.comparisons.js';
import { HeardEvents } from './soak.events.js';
import { type Schedule, SoakDay } from './soak.day.js';
import { SoakRedis } from './soak.redis.js';
import { soakReport } from './soak.report.js';
import { problemsOf } from './soak.verdict.js';

const COMMAND = fileURLToPath(new URL('../../packages/session-redis/bin/nest-session-redis.mjs', import.meta.url));
const NAMESPACES = ['nest:session', 'nest:deadlines'];

const HOUR = 60;
const HOURS = isQuick ? 2 : 24;
const SCHEDULE: Schedule = {
  length: HOURS * HOUR,
  instances: isQuick ? 4 : 10,
  lasting: 3,
  deploys: Array.from({ length: HOURS - 1 }, (_, i) => (i + 1) * HOUR - 10),
  failovers: isQuick ? [75] : [306, 666, 1026],
  interval: isQuick ? 5 : 15,
};
/** Minutes after which every session has ended, and after which Redis has forgotten what was fired and ended. */
const UNTIL_ENDED = 35;
const UNTIL_FORGOTTEN = 75;
// Deadlines are looked for once in a minute of this machine when none is expected.
const PATIENT = { timeout: 180_000, interval: 500 };

const EVENT_TYPES = ['created', 'expired', 'deleted', 'signed-in', 'id-changed', 'fired'] as const;

/** How much breaks a rule of the data model. */
async function findingsOf(redis: SoakRedis): Promise<number> {
  const [port, master] = redis.address;
  let count = 0;
  for (const namespace of NAMESPACES) {
    const args = ['verify', '--json', '--sentinel', `127.0.0.1:${port}`, '--master', master, '--namespace', namespace];
    const call = promisify(execFile)(process.execPath, [COMMAND, ...args]);
    // It ends with 2 when it has found something.
    const { stdout } = await call.catch((error: { readonly stdout: string }) => error);
    const { findings } = JSON.parse(stdout) as { findings: { readonly count: number }[] };
    if (findings.length > 0) console.error(`${namespace}: ${JSON.stringify(findings)}`);
    count += findings.reduce((sum, each) => sum + each.count, 0);
  }
  return count;
}

async function soak(redis: SoakRedis, counting: RedisServer, heard: HeardEvents): Promise<SoakFindings> {
  const day = await SoakDay.begin(redis, SCHEDULE, counting.port);
  const before = await redis.figures();
  await day.live();
  await day.rest(UNTIL_ENDED, { areOver: false });
  const isOver = async () => {
    const { sessions, deadlines, lag } = await day.store();
    return sessions + deadlines + lag === 0;
  };
  // What has not ended by then stands in the results.
  await eventually(isOver, PATIENT).catch(() => undefined);
  await day.rest(UNTIL_FORGOTTEN, { areOver: true });
  const end = { ...(await day.store()), findings: await findingsOf(redis) };
  const afterwards = await redis.figures();
  await day.end();
  const counts = await Promise.all(EVENT_TYPES.map((type) => heard.count(type)));
  const events = Object.fromEntries(EVENT_TYPES.map((type, i) => [type, counts[i]!]));
  const calls = { ...day.calls, failedInFailovers: day.failedInFailovers };
  return { schedule: SCHEDULE, looks: day.looks, calls, events, end, before, afterwards };
}

const redis = await SoakRedis.start();
const counting = await RedisServer.start();
const heard = new HeardEvents(counting.url);
try {
  const found = await soak(redis, counting, heard);
  const results = await writeResults('soak', comparisonsOf(found), await redis.version());
  console.log(soakReport(results));
  const problems = problemsOf(results);
  for (const each of problems) console.error(`FAILED: ${each}`);
  process.exitCode = problems.length > 0 ? 1 : 0;
} finally {
  heard.disconnect();
  await counting.stop();
  await redis.stop();
}
