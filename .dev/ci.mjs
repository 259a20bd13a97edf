// .ci/run: what every change needs.
import { main } from './processes.mjs';
import { npm, runSteps } from './steps.mjs';
import { temporaryFolder } from './temporary-folder.mjs';

// Of the suites that take long: the packages of docs/works-with.md, what a client hears of a failed save, requests at
// once and replies that are lost, expiries during outages and crashes, timers outside of Redis, requests and events on
// a Cluster, the contract of stores with all that a store can have, a move to other partitions, what managed services
// forbid, what telemetry shows on a Cluster and with a Sentinel, deadlines in several partitions and on a Cluster,
// sessions shared with Spring while connections are cut, groups that are absent or slow, stores that fail and recover,
// several times too, and the demo that fails.
const SHORT_CHAOS =
  'saved-before-answered|failed-save|concurrency|lost-replies|lost-notifications|exactly-once|killed-while-sweeping|' +
  'cluster-timers|docs/test/timers|cluster.connection|cluster-application|cluster-delivery|redis-cluster|' +
  'replicated-writes|partitioned-session.contract|repartition-variants|deadline-variants|' +
  'managed-services|security/(telemetry|large-headers)|shared-faults|leak.guard|partitioned-store|cluster-rights|' +
  'docs/test/combinations|operation/recovery|once-more|absent-group|unread-group|flood-of-events|demo/test/faults';

// Packed once for all steps that install the packages, unless that has been done.
const isPacked = process.env.TARBALLS !== undefined;
process.env.TARBALLS ??= temporaryFolder('tarballs');

await main(() =>
  runSteps([
    // Before npm install gets a chance to touch the lock file.
    { title: 'top level and lock file', command: [process.execPath, '.dev/check-tree.mjs'] },
    npm('setup', { isNeeded: true }),
    npm('build'),
    ...(isPacked ? [] : [npm('release:pack', { args: [process.env.TARBALLS] })]),
    // Each of these is busy with one processor, the longest first.
    [
      npm('lint'), // import cycles included
      npm('typecheck'),
      npm('check:publish'),
      npm('site'),
      npm('check:docs'),
      npm('check:api'),
      npm('format:check'),
      npm('check:unused'),
      npm('check:structure'),
    ],
    npm('test', { report: 'jest' }),
    npm('test:e2e', { report: 'jest' }),
    [
      npm('test:examples', { report: 'checks' }),
      npm('test:applications', { report: 'checks' }),
      // The versions of the workspace are those of the examples and of an application.
      npm('test:matrix', { args: ['oldest'], report: 'checks' }),
      npm('test:spring', { args: ['page'], report: 'checks' }),
    ],
    // Counts of commands, and ratios of times in Redis: another machine, or other work on it, does not change them.
    npm('bench', { args: ['budgets', '--quick', '--check', '--node=here'] }),
    // Most of the time they wait.
    npm('chaos', { args: ['--maxWorkers=3', SHORT_CHAOS], report: 'jest' }),
  ]),
);
