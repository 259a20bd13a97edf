import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { resultsFile, staleDocuments, USUAL, writeDocuments } from './documents.js';

// Behind `npm run bench`: runs the subjects that are named, or the usual ones, each in a process of its own. `--write`
// also records the results, and writes the tables anew; `--append` does so with the rounds of the recorded runs and of
// this one. `--check` compares with the recorded results.
const { positionals, values: options } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    append: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
  },
});

const writes = options.write || options.append;

async function run(subject: string): Promise<boolean> {
  console.log(`\n== ${subject}`);
  const began = performance.now();
  const environment = {
    ...(options.quick ? { BENCH_QUICK: '1' } : {}),
    ...(writes ? { BENCH_JSON: resultsFile(subject) } : {}),
    ...(options.append ? { BENCH_APPEND: '1' } : {}),
    ...(options.check ? { BENCH_CHECK: resultsFile(subject) } : {}),
  };
  const file = fileURLToPath(new URL(`./${subject}.bench.js`, import.meta.url));
  const child = spawn(process.execPath, [file], { stdio: 'inherit', env: { ...process.env, ...environment } });
  const [code] = (await once(child, 'exit')) as [number | null];
  console.log(`\n-- ${subject}: ${Math.round((performance.now() - began) / 1000)} s`);
  return code === 0;
}

const failed: string[] = [];
for (const subject of positionals.length > 0 ? positionals : USUAL) {
  if (!(await run(subject))) failed.push(subject);
}
if (writes && failed.length === 0) await writeDocuments();
for (const file of options.check ? await staleDocuments() : []) {
  failed.push(`${file} is not what bench/results says: run npm run bench -- --write`);
}
for (const each of failed) console.error(`FAILED: ${each}`);
process.exitCode = failed.length > 0 ? 1 : 0;
