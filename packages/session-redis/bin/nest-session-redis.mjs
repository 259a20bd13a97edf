#!/usr/bin/env node
// nest-session-redis expirations: moves the ends of sessions to where the option `expirations` says. See docs/expiry.md.
import { parseArgs } from 'node:util';
import { moveExpirations } from '@nest-session/redis';

const USAGE = `Usage: nest-session-redis expirations --to <store> [options]

expirations moves the ends of the sessions to buckets or to the sorted-set;
set the option expirations in all instances first. You can interrupt the command and run it again.

  --to <store>         buckets or sorted-set
  --partitions <number>  the option partitions; by default 1
  --url <url>          Redis; by default REDIS_URL, else redis://localhost:6379
  --namespace <name>   the option namespace; by default nest:session
  --retention <time>   the option events.retention; by default 1h`;

const text = { type: 'string' };
const COMMON = { url: text, namespace: text, retention: text, help: { type: 'boolean' } };
const COMMANDS = new Map([
  ['expirations', { run: moveEnds, required: { to: text }, optional: { partitions: text } }],
]);

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopping.abort());

try {
  await main();
} catch (error) {
  if (stopping.signal.aborted) console.error('Interrupted. Run the command again: it continues.');
  else console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

async function main() {
  const options = Object.assign(
    {},
    COMMON,
    ...[...COMMANDS.values()].flatMap((each) => [each.required, each.optional]),
  );
  const { values, positionals } = parseArgs({ allowPositionals: true, options });
  if (values.help) return console.log(USAGE);
  const [name] = positionals;
  const command = COMMANDS.get(name);
  if (positionals.length !== 1 || !command) throw new Error(USAGE);
  const { run, required, optional } = command;
  const known = { ...COMMON, ...required, ...optional };
  const problems = [
    ...Object.keys(required).flatMap((each) => (values[each] ? [] : [`${name} needs the option --${each}.`])),
    ...Object.keys(values).flatMap((each) => (each in known ? [] : [`${name} has no option --${each}.`])),
  ];
  if (problems.length > 0) throw new Error(`${problems.join('\n')}\n\n${USAGE}`);
  await run(values);
}

/** The options that both commands have. */
function common({ url = process.env.REDIS_URL || undefined, namespace, retention }) {
  return { url, namespace, events: { retention } };
}

async function moveEnds({ to, partitions = '1', ...others }) {
  const options = { ...common(others), partitions: Number(partitions), expirations: to };
  const { moved, ended, left } = await moveExpirations(options, { signal: stopping.signal });
  console.log(`${moved} sessions moved, ${ended} had ended`);
  if (left > 0)
    console.log('Something is left: set the option expirations in all instances, and run the command again.');
}
