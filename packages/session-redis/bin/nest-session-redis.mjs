#!/usr/bin/env node
// nest-session-redis repartition: moves the sessions of a namespace to another number of partitions while applications use
// them. See docs/repartitioning.md.
import { parseArgs } from 'node:util';
import { repartition } from '@nest-session/redis';

const USAGE = `Usage: nest-session-redis repartition --from <number> --to <number> [options]

Moves the sessions of a namespace to another number of partitions while applications use them. All instances must have
the option partitions: { from, to }. You can interrupt the command and run it again.

  --from <number>      how many partitions there are
  --to <number>        how many there are to be
  --url <url>          Redis; by default REDIS_URL, else redis://localhost:6379
  --namespace <name>   the option namespace; by default nest:session
  --retention <time>   the option events.retention; by default 1h`;

const text = { type: 'string' };
const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopping.abort());

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { from: text, to: text, url: text, namespace: text, retention: text, help: { type: 'boolean' } },
  });
  if (values.help) console.log(USAGE);
  else if (positionals.length !== 1 || positionals[0] !== 'repartition') throw new Error(USAGE);
  else await move(values);
} catch (error) {
  if (stopping.signal.aborted) console.error('Interrupted. Run the command again: it continues.');
  else console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

async function move({ from, to, url = process.env.REDIS_URL, namespace, retention }) {
  const options = {
    partitions: { from: Number(from), to: Number(to) },
    ...(url && { url }),
    ...(namespace && { namespace }),
    ...(retention && { events: { retention } }),
  };
  let last = '';
  const onProgress = ({ step, moved, waitingFor }) => {
    const line = `${step}: ${moved} sessions moved${waitingFor && `; waiting for ${waitingFor}`}`;
    if (line !== last) console.log(line);
    last = line;
  };
  await repartition(options, { signal: stopping.signal, onProgress });
  console.log(`All sessions are in ${to} partitions. Set the option partitions to ${to} in all instances.`);
}
