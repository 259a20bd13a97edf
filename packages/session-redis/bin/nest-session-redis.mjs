#!/usr/bin/env node
// `nest-session-redis repartition` moves the sessions of a namespace to another number of partitions while its
// applications are stopped. See docs/repartitioning.md. `nest-session-redis expirations` moves the ends of the sessions
// to the store that the option `expirations` names. See docs/expiry.md.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { moveExpirations, repartition } from '@nest-session/redis';

const USAGE = `Usage: nest-session-redis repartition --from <number> --to <number> [options]
       nest-session-redis expirations --to <store> [options]

repartition moves all sessions and events of a namespace to another number of partitions. Stop all instances first.
expirations moves the ends of the sessions to buckets or to the sorted set. Set the option expirations in all instances
first. You can interrupt both commands and run them again.

  --from <number>        repartition: the current number of partitions
  --to <number>          repartition: the new number of partitions
  --to <store>           expirations: the new store, buckets or sorted-set
  --partitions <number>  expirations: the option partitions (default 1)
  --retention <time>     expirations: the option events.retention (default 1h)
  --url <url>            the URL of Redis (default REDIS_URL, or redis://localhost:6379 if that is not set)
  --namespace <name>     the option namespace (default nest:session)
  -h, --help             print this
  -v, --version          print the version of @nest-session/redis`;
const MORE = 'See nest-session-redis --help';
const STORES = ['buckets', 'sorted-set'];

const text = { type: 'string' };
const FLAGS = { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean', short: 'v' } };
const COMMON = { url: text, namespace: text, ...FLAGS };
const COMMANDS = new Map([
  ['expirations', { run: moveEnds, required: { to: text }, optional: { partitions: text, retention: text } }],
  ['repartition', { run: move, required: { from: text, to: text } }],
]);

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopping.abort());

try {
  await main();
} catch (error) {
  if (stopping.signal.aborted) console.error('Interrupted. Run the command again to continue.');
  else console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

async function main() {
  const [first] = process.argv.slice(2);
  if (first === 'help') return console.log(USAGE);
  // Before its options: those of a command that does not exist are unknown as well.
  if (first !== undefined && !first.startsWith('-')) assertKnown(first);
  const options = Object.assign(
    {},
    COMMON,
    ...[...COMMANDS.values()].flatMap((each) => [each.required, each.optional]),
  );
  const { values, positionals } = parsed(options);
  if (values.help) return console.log(USAGE);
  if (values.version) return console.log(version());
  const [name, unexpected] = positionals;
  if (name === undefined) throw new Error(USAGE);
  assertKnown(name);
  if (unexpected !== undefined) throw new Error(`Unexpected argument ${JSON.stringify(unexpected)}.\n\n${USAGE}`);
  const { run, required, optional } = COMMANDS.get(name);
  const known = { ...COMMON, ...required, ...optional };
  const problems = [
    ...Object.keys(required).flatMap((each) => (values[each] ? [] : [`${name} needs the option --${each}.`])),
    ...Object.keys(values).flatMap((each) => (each in known ? [] : [`${name} has no option --${each}.`])),
  ];
  if (problems.length > 0) throw new Error(`${problems.join('\n')}\n\n${USAGE}`);
  await run(values).catch((error) => {
    throw inItsWords(error, values);
  });
}

function assertKnown(name) {
  if (COMMANDS.has(name)) return;
  const names = [...COMMANDS.keys()].join(', ');
  throw new Error(`Unknown command ${JSON.stringify(name)}. The commands are ${names}. ${MORE}`);
}

/** @throws an error that says what is wrong, without the remarks of Node.js */
function parsed(options) {
  try {
    return parseArgs({ allowPositionals: true, options });
  } catch (error) {
    const [problem] = error.message.split(/\.?(?:\n|$| To )/);
    throw new Error(`${problem}. ${MORE}`, { cause: error });
  }
}

/** An error of the library names its options, and whoever runs the command knows those of the command. */
function inItsWords(error, { url }) {
  const names = { url: url === undefined ? 'REDIS_URL' : '--url', namespace: '--namespace' };
  const [begin, option] = /^RedisSessionModule: Option `(url|namespace)`/.exec(error?.message) ?? [];
  return option === undefined ? error : new Error(error.message.replace(begin, names[option]), { cause: error });
}

function version() {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version;
}

function numberOf(option, given) {
  if (/^\d+$/.test(given)) return Number(given);
  throw new Error(`--${option} must be a whole number, but is ${JSON.stringify(given)}. ${MORE}`);
}

/** The options that both commands have. */
function common({ url = process.env.REDIS_URL || 'redis://localhost:6379', namespace }) {
  return { url, namespace };
}

async function moveEnds({ to, partitions = '1', ...others }) {
  if (!STORES.includes(to))
    throw new Error(`--to must be ${STORES.join(' or ')}, but is ${JSON.stringify(to)}. ${MORE}`);
  const events = { retention: others.retention };
  const options = { ...common(others), events, partitions: numberOf('partitions', partitions), expirations: to };
  const { moved, ended, left } = await moveExpirations(options, { signal: stopping.signal });
  console.log(`${moved} sessions moved, ${ended} had ended`);
  if (left > 0)
    console.log(
      'Some sessions still have their ends in the other store. Set the option expirations in all instances, ' +
        'and run the command again.',
    );
}

async function move({ from, to, ...others }) {
  let last = '';
  const onProgress = ({ step, moved }) => {
    const line = `${step}: ${moved} sessions moved`;
    if (line !== last) console.log(line);
    last = line;
  };
  const counts = { from: numberOf('from', from), to: numberOf('to', to) };
  await repartition(common(others), { ...counts, signal: stopping.signal, onProgress });
  console.log(
    `All sessions are in ${to === '1' ? '1 partition' : `${to} partitions`}. Set the option partitions to ${to}, and start the applications.`,
  );
}
