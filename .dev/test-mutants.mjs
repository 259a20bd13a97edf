// npm run test:mutants: whether the tests would notice a mistake. Without a folder, those of
// .dev/mutants/lua.mutants.mjs; words choose the ones that have them in their sentence, and with --model the tests that
// draw sequences of requests have to find by themselves what they can. With a folder of sources, Stryker makes mistakes
// there, and words choose the specs.
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { sumUp } from './checks.mjs';
import { ensureTests } from './install.mjs';
import { mutants } from './mutants/lua.mutants.mjs';
import { tryOut, withMistakes } from './mutants/lua.trial.mjs';
import { mutate } from './mutants/stryker.mjs';
import { main, runQuietly } from './processes.mjs';
import { temporaryFolder } from './temporary-folder.mjs';

const MODEL = {
  spec: 'concurrent-requests',
  test: 'sessions in Redis equal the model for any interleaving of requests, clock and sweeper',
};

await main(async () => {
  const { values, positionals } = parseArgs({
    options: { outputFile: { type: 'string' }, model: { type: 'boolean' } },
    allowPositionals: true,
  });
  Object.assign(process.env, await ensureTests());
  const [folder, ...words] = positionals;
  if (folder !== undefined && existsSync(folder)) {
    await runQuietly('npm', ['run', '--silent', 'build']);
    return mutate(folder, words);
  }
  const all = values.model ? mutants.filter(({ model }) => model).map((each) => ({ ...each, ...MODEL })) : mutants;
  const chosen = withMistakes(all).filter(({ mistake }) => positionals.every((word) => mistake.includes(word)));
  const checks = await tryOut(chosen, temporaryFolder('mutants'), { RUNS: '1000' });
  return sumUp([{ checks }], values.outputFile);
});
