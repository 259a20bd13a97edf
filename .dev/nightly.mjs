// npm run nightly: every server, also as a Cluster, the least rights, every Node, ORMs, every store of Spring, Keycloak,
// ioredis 5 and BullMQ 5, the mutants, the model and all suites that take long. Words choose the steps that have them in
// their title: `npm run nightly -- valkey`.
import { ensurePackages } from './install.mjs';
import { NODES, OTHER_SERVERS, programOf, withNode } from './other-versions.mjs';
import { main } from './processes.mjs';
import { npm, runSteps } from './steps.mjs';

// What calls Redis.
const ON_REDIS = 'packages/(redis-events|deadlines|session-(redis|spring|cli|timers))/test/';
// The npm packages with these servers are built without TLS.
const WITHOUT_TLS = `${ON_REDIS}(?!connection/(tls|address-options))`;

const CLUSTER = `${ON_REDIS}.*cluster`;
// The instances there are processes, with the ioredis of the workspace.
const CLUSTER_IN_PROCESS = `${ON_REDIS}(?!faults/cluster-instances).*cluster`;

const words = process.argv.slice(2);

await main(async () => {
  await ensurePackages();
  const steps = [
    onServer("this machine's Redis"),
    ...OTHER_SERVERS.map((name) => onServer(name, async () => ({ REDIS_SERVER: await programOf(name) }), WITHOUT_TLS)),
    ...OTHER_SERVERS.map((name) => clusterOn(name, CLUSTER, async () => ({ REDIS_SERVER: await programOf(name) }))),
    clusterOn('ioredis-5', CLUSTER_IN_PROCESS, async () => ({ IOREDIS: await programOf('ioredis-5') })),
    withBullMq5('test', 'packages/session-timers/test/timers/timers.app'),
    withBullMq5('chaos', 'packages/session-timers/test/faults/'),
    npm('test:acl', { report: 'jest' }),
    ...NODES.flatMap((name) => [onNode('test:matrix', name), onNode('test:applications', name)]),
    npm('test:nest-add', { report: 'checks' }),
    npm('test:orms', { report: 'checks' }),
    npm('test:spring', { report: 'checks' }),
    npm('test:keycloak', { report: 'jest' }),
    npm('test:histories', { report: 'checks' }),
    npm('test:mutants', { report: 'checks' }),
    npm('test:mutants', { args: ['--model'], report: 'checks' }),
    npm('chaos', { report: 'jest' }),
  ];
  const chosen = steps.filter(({ title }) => words.every((word) => title.includes(word)));
  if (chosen.length === 0) throw new Error(`No step has all of these words in its title: ${words.join(' ')}`);
  return runSteps(chosen);
});

function onNode(script, name) {
  const step = npm(script, { report: 'checks', env: () => withNode(name) });
  return { ...step, title: `${step.title} on ${name}` };
}

function onServer(name, env, files = ON_REDIS) {
  const step = npm('test', { args: [files], report: 'jest', env });
  return { ...step, title: `${step.title} on ${name}` };
}

function clusterOn(name, files, env) {
  const step = npm('chaos', { args: [files], report: 'jest', env });
  return { ...step, title: `${step.title} on ${name}` };
}

// Not the contract: when it is closed without its Redis, a worker of BullMQ 5 leaves a timer of ten seconds.
function withBullMq5(script, files) {
  const env = async () => ({ BULLMQ: await programOf('bullmq-5') });
  const step = npm(script, { args: [files], report: 'jest', env });
  return { ...step, title: `${step.title} on bullmq-5` };
}
