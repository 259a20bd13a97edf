// npm run test:acl: the tests of redis-events, session-redis, session-spring, session-cli and session-timers on servers where each namespace has a user with the
// rights of docs/securing-redis.md. All connections of the library log in as that user (acl-login.mjs), those of the
// tests do not. It fails when Redis denies the library something, also where no test notices. Arguments are those of Jest.
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensurePackages, ensureRedis } from './install.mjs';
import { main, root, run } from './processes.mjs';

/** Those of the tests. In another one, the library cannot log in, which is told as denied. */
// prettier-ignore
const NAMESPACES = [
  'nest:session', 'nest:deadlines', 'nest:events', 'spring:session', 'spring:session:nest', 'express', 'fastify', 'shop', 'shop:admin', 'shop:deadlines', 'quiet', 'other', 'foreign', 'partitioned', 'catch:up',
  'from:factory', 'shop-true', 'shop-false', 'keys', 'job', 'own', 'cron', 'poll', 'timer', 'five', 'six', 'six-due', 'n1', 'n4',
];
const LOGIN = join(root, '.dev/acl-login.mjs');

await main(async () => {
  await ensurePackages();
  const folder = await mkdtemp(join(tmpdir(), 'nest-session-acl-'));
  try {
    const [server, denied] = [join(folder, 'redis-server'), join(folder, 'denied')];
    await writeFile(server, await withUsers(await ensureRedis()));
    await chmod(server, 0o755);
    await writeFile(denied, '');
    const args = process.argv.slice(2);
    const paths = args.every((arg) => arg.startsWith('-'))
      ? ['packages/(redis-events|deadlines|session-(redis|spring|cli|timers))/test/']
      : [];
    const jest = [...paths, ...args, `--setupFiles=${LOGIN}`];
    const env = { REDIS_SERVER: server, PRELOADED_BY_WORKERS: LOGIN, ACL_DENIED: denied };
    const code = await run('npm', ['test', '--', ...jest], env);
    const lines = new Set((await readFile(denied, 'utf8')).split('\n').filter((line) => line !== ''));
    for (const line of lines) console.error(`Denied: ${line}`);
    return code || (lines.size > 0 ? 1 : 0);
  } finally {
    await rm(folder, { recursive: true });
  }
});

/** A program that starts redis-server with the users. */
async function withUsers(redisServer) {
  const text = await readFile(join(root, 'docs/securing-redis.md'), 'utf8');
  const all = [...text.matchAll(/^ACL SETUSER app (.+)$/gm)].flatMap(([, line]) => line.match(/"[^"]*"|\S+/g));
  // Only the user of that namespace reaches it; and what takes the password away comes after the tests.
  const rules = all.filter((rule) => !/^(~spring:|<)/.test(rule));
  // The documentation says it of the option `partitions`, without a line of its own.
  const [channel] = rules.filter((rule) => rule.startsWith('&__keyspace@'));
  rules.push(channel.replace('nest:session:', 'nest:session:{*}:'));
  const users = NAMESPACES.map((namespace) => {
    const own = rules.map((rule) => rule.replaceAll('"', '').replaceAll('nest:session', namespace));
    // Sessions that are shared with Spring are in the namespace beside.
    if (namespace.endsWith(':nest')) own.push(`~${namespace.slice(0, -':nest'.length)}:*`);
    return ['--user', namespace, ...own.filter((rule) => rule !== 'reset')].map((word) => `'${word}'`).join(' ');
  });
  return [
    '#!/bin/sh',
    `case " $* " in *" --version "* | *" --sentinel "*) exec '${redisServer}' "$@" ;; esac`,
    `exec '${redisServer}' "$@" ${users.join(' ')}`,
    '',
  ].join('\n');
}
