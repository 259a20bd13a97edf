import { shownContent } from '@nest-session/redis-events/internal';
import { type Check, error, ok, seePage, warning } from './diagnosis.js';

/** Whether this version can use what is in the namespace: as an application checks it at the start. */
export const FORMAT: Check = {
  look({ store, storeProblem, redis }) {
    if (store) {
      const { owner, count, namespace } = store.partitions;
      const where = `namespace ${JSON.stringify(namespace)}`;
      return [
        ok(
          `The ${shownContent(owner.holds)} in ${where} are in ${count === 1 ? '1 partition' : `${count} partitions`}`,
        ),
      ];
    }
    const problem = problemOf(storeProblem);
    if (!problem.startsWith('No application')) return [error(problem, seePage('Operating'))];
    const given = JSON.stringify(redis.options.namespace);
    return [warning(problem, `If that is not so, --namespace is not ${given}. Otherwise start one.`)];
  },
};

function problemOf(problem: Error | undefined): string {
  const { problems } = Object(problem) as { readonly problems?: readonly string[] };
  return problems?.join(' ') ?? problem?.message ?? 'The namespace cannot be read';
}
