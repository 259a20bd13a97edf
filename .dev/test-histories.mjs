// npm run test:histories: instances of the built packages call the same sessions at the same time, while Redis and
// connections fail, and a checker that knows nothing of this library, porcupine, looks for an order of the calls that
// explains all answers. Without Go, or what Go fetches, all of this is skipped, loudly. Words choose scenarios;
// SECONDS_EACH is how long each records. First, the checker has to refuse calls that nothing explains.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { check, conclude, report } from './checks.mjs';
import { Recorder } from '../packages/session-redis/test/histories/recorder.mjs';
import { ensurePackages, ensureRedis } from './install.mjs';
import { capture, main, root, runQuietly } from './processes.mjs';
import { temporaryFolder } from './temporary-folder.mjs';

const FOLDER = 'packages/session-redis/test/histories';
const MILLISECONDS_EACH = Number(process.env.SECONDS_EACH ?? 20) * 1000;
const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always'];
const KEYS = [{ id: 'first', key: randomBytes(32).toString('base64') }];

/** `fault` runs again and again, with a pause in between. `isAtLeastOnce`: handlers may hear of an end again. */
const SCENARIOS = {
  quiet: {},
  partitions: { options: { partitions: 4 } },
  encrypted: { options: { encryption: { keys: KEYS } } },
  cluster: { isCluster: true },
  'cut connections': { fault: ({ proxy }) => proxy.cut(), isAtLeastOnce: true },
  'lost replies': { fault: ({ proxy }) => void proxy.dropNextReply('sessions'), isAtLeastOnce: true },
  'frozen Redis': {
    fault: async ({ redis }) => {
      redis.freeze();
      await sleep(500 + Math.random() * 1000);
      redis.thaw();
    },
    isAtLeastOnce: true,
  },
  'killed Redis': {
    fault: async ({ redis }) => {
      await redis.kill();
      await redis.restart();
    },
    isAtLeastOnce: true,
  },
  'killed instances': { fault: ({ recorder }) => recorder.replaceInstance(), isAtLeastOnce: true },
};

await main(async () => {
  const { values, positionals: words } = parseArgs({
    options: { outputFile: { type: 'string' } },
    allowPositionals: true,
  });
  const chosen = Object.entries(SCENARIOS).filter(([title]) => words.every((word) => title.includes(word)));
  if (chosen.length === 0) throw new Error(`No scenario has all of these words in its title: ${words.join(' ')}`);
  await ensurePackages();
  process.env.REDIS_SERVER = await ensureRedis();
  await runQuietly('npm', ['run', '--silent', 'build']);
  const checker = join(temporaryFolder('histories'), 'check');
  const built = await capture('go', ['build', '-o', checker, '.'], { cwd: join(root, FOLDER) }).catch(
    ({ message }) => ({ code: 1, output: message }),
  );
  if (built.code !== 0) {
    console.error(`SKIPPED: the checker cannot be built: ${built.output.trim()}`);
    const skipped = chosen.map(([title]) => report([title], { checks: [{ name: title, result: 'skipped' }] }));
    return conclude(skipped, values.outputFile);
  }
  const rows = [report(['the checker'], await refusesWhatCannotBe(checker))];
  for (const [title, scenario] of chosen) rows.push(report([title], await run(scenario, checker)));
  return conclude(rows, values.outputFile);
});

async function run({ options, isCluster, fault, isAtLeastOnce }, checker) {
  const { RedisCluster, RedisServer } = await import('../libs/testing/dist/index.js');
  const { TcpProxy } = await import('../libs/test-infrastructure/dist/index.js');
  const redis = isCluster ? await RedisCluster.start() : await RedisServer.start({ args: DURABLE });
  const proxy = isCluster ? undefined : await TcpProxy.start({ port: redis.port });
  const address = isCluster ? { cluster: { nodes: redis.addresses } } : { url: proxy.url };
  const recorder = await Recorder.start({ ...address, ...options });
  const end = Date.now() + MILLISECONDS_EACH;
  while (Date.now() < end) {
    await sleep(200 + Math.random() * 800);
    await fault?.({ redis, proxy, recorder });
  }
  await recorder.stop();
  await proxy?.stop();
  await redis.stop();
  const verdict = await judge(checker, recorder.calls);
  const problems = recorder.eventProblems({ isAtLeastOnce });
  const output = [`${recorder.calls.length} calls of ${recorder.sessionCount} sessions`, verdict.output, ...problems];
  if (verdict.code !== 0) output.push(await kept(recorder.calls));
  return {
    output: output.join('\n'),
    checks: [
      check('an order of the calls of each session explains all answers', verdict.code === 0),
      check('handlers hear of every end, and of no other', problems.length === 0),
    ],
  };
}

/** A load that misses the change of a save which had been answered, and one that finds a session after its end. */
async function refusesWhatCannotBe(checker) {
  const calls = (session, ...rows) =>
    rows.map(([call, input, output], i) => ({ session, call, begin: i * 10 + 1, return: i * 10 + 5, input, output }));
  const shown = { found: true, a: 'first', n: 0, principal: '' };
  const created = ['create', {}, { outcome: 'saved', id: 'x' }];
  const found = ['load', { id: 'x' }, shown];
  const sound = await judge(checker, calls('sound', created, found));
  const missed = await judge(
    checker,
    calls('missed', created, ['set', { id: 'x', value: 'b' }, { outcome: 'saved' }], found),
  );
  const revived = await judge(checker, calls('revived', created, ['end', { id: 'x' }, { outcome: 'saved' }], found));
  return {
    output: [sound, missed, revived].map(({ output }) => output).join(''),
    checks: [
      check('accepts what an order explains', sound.code === 0),
      check('refuses a load that misses a save', missed.code === 1),
      check('refuses a session that comes back', revived.code === 1),
    ],
  };
}

/** Resolves to the exit code of the checker and what it printed. */
async function judge(checker, calls) {
  const child = spawn(checker, { stdio: ['pipe', 'pipe', 'inherit'] });
  const output = child.stdout.setEncoding('utf8').toArray();
  for (const each of calls) child.stdin.write(`${JSON.stringify(each)}\n`);
  child.stdin.end();
  const [code] = await once(child, 'close');
  return { code, output: (await output).join('') };
}

async function kept(calls) {
  const file = join(await mkdtemp(join(tmpdir(), 'nest-session-history-')), 'calls.jsonl');
  await writeFile(file, calls.map((each) => `${JSON.stringify(each)}\n`).join(''));
  return `The calls are in ${file}`;
}
