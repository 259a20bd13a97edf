// npm run test:mutants: whether the tests would notice. Known mistakes are made one at a time, in copies of the packages.
// Of each, the test has to fail that is written down with it, and to pass without it. With --model, the tests that draw
// sequences of requests at random have to find mistakes by themselves. Words choose those that have them in their sentence.
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { sumUp } from './checks.mjs';
import { ensureCompiler, ensurePackages, ensureRedis } from './install.mjs';
import { contract } from './mutants/contract.mutants.mjs';
import { cookies } from './mutants/cookies.mutants.mjs';
import { delivery } from './mutants/delivery.mutants.mjs';
import { encryption } from './mutants/encryption.mutants.mjs';
import { expressSession } from './mutants/express-session.mutants.mjs';
import { guarding } from './mutants/guards.mutants.mjs';
import { limits } from './mutants/limit.mutants.mjs';
import { mapStore } from './mutants/map-store.mutants.mjs';
import { findByModel } from './mutants/model.trial.mjs';
import { MutantCopy } from './mutants/mutant.copy.mjs';
import { failByName } from './mutants/named-test.trial.mjs';
import { operation } from './mutants/operation.mutants.mjs';
import { findPlaces, locate } from './mutants/places.mjs';
import { redisStore } from './mutants/redis-store.mutants.mjs';
import { repartitioning } from './mutants/repartitioning.mutants.mjs';
import { requests } from './mutants/requests.mutants.mjs';
import { sockets } from './mutants/sockets.mutants.mjs';
import { sortedSet } from './mutants/sorted-set.mutants.mjs';
import { timers } from './mutants/timers.mutants.mjs';
import { main } from './processes.mjs';
import { temporaryFolder } from './temporary-folder.mjs';

await main(async () => {
  const { values, positionals: words } = parseArgs({
    options: { outputFile: { type: 'string' }, model: { type: 'boolean' } },
    allowPositionals: true,
  });
  await ensurePackages();
  const stores = [...redisStore, ...contract, ...mapStore, ...limits, ...encryption];
  const all = [
    ...cookies,
    ...operation,
    ...delivery,
    ...repartitioning,
    ...requests,
    ...sockets,
    ...timers,
    ...sortedSet,
    ...guarding,
    ...stores,
    ...expressSession,
  ];
  const { chosen, problems } = placed(all, await findPlaces(), words);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  process.env.REDIS_SERVER = await ensureRedis();
  await ensureCompiler();
  const copies = await copiesIn(temporaryFolder('mutants'));
  const checks = await (values.model ? findByModel(chosen, copies) : failByName(chosen, copies));
  copies.forEach((copy) => copy.close());
  return sumUp([{ checks }], values.outputFile);
});

/** The mutants that have all words in their sentence, each with its place; and why others, chosen or not, have none. */
function placed(mutants, places, words) {
  const problems = [];
  const all = mutants.flatMap((mutant) => {
    try {
      return [{ ...mutant, place: locate(mutant, places) }];
    } catch (error) {
      problems.push(error.message);
      return [];
    }
  });
  return { chosen: all.filter(({ mistake }) => words.every((word) => mistake.includes(word))), problems };
}

/** Tests mostly wait, but a core for each is what they are sure to be in time with. */
function copiesIn(folder) {
  const numbers = Array.from({ length: availableParallelism() }, (_, i) => `${i + 1}`);
  return Promise.all(numbers.map((number) => MutantCopy.make(join(folder, number))));
}
