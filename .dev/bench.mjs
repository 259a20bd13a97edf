// npm run bench: builds, and measures on the Node.js that docs/benchmarks.md is about. `--node=node-20` chooses another
// one, and `--node=here` the one that runs this script. The other arguments are those of bench/src/bench.main.ts.
import { ensureBeanstalkd, ensurePackages } from './install.mjs';
import { programOf } from './other-versions.mjs';
import { main, run, runQuietly } from './processes.mjs';

const OPTION = '--node=';

const isVersion = (argument) => argument.startsWith(OPTION);
const all = process.argv.slice(2);
const version = all.find(isVersion)?.slice(OPTION.length) ?? 'node-24';

await main(async () => {
  await ensurePackages();
  process.env.BEANSTALKD = await ensureBeanstalkd();
  await runQuietly('npm', ['run', '-s', 'build']);
  await runQuietly('node_modules/.bin/tsc', ['-b', 'bench']);
  const program = version === 'here' ? process.execPath : await programOf(version);
  return run(program, ['bench/dist/bench.main.js', ...all.filter((argument) => !isVersion(argument))]);
});
