import { BenchServer } from './bench.server.js';
import { type AdapterName, adapters, type ApplicationName, applications } from './requests.applications.js';
import { type Comparison, isQuick, writeResults } from './results.js';
import { printTable, runRounds } from './rounds.js';

const ROUNDS = isQuick ? 3 : 15;
const WARM_UP = isQuick ? 1 : 3;
const DURATION = isQuick ? 300 : 500;
const CONNECTIONS = 16;

interface Route {
  readonly name: string;
  readonly application: ApplicationName;
  readonly path: string;
  readonly loggedIn?: boolean;
}

const routes: readonly Route[] = [
  { name: 'Nest', application: 'bare', path: '/plain' },
  { name: '+ an interceptor that does nothing', application: 'interceptor', path: '/plain' },
  { name: '+ AsyncLocalStorage as well', application: 'context', path: '/plain' },
  { name: '+ SessionModule: excluded', application: 'session', path: '/excluded' },
  { name: '+ SessionModule: no cookie, not used', application: 'session', path: '/plain' },
  { name: '+ SessionModule: an attribute is read', application: 'session', path: '/read', loggedIn: true },
];

/** The cost of a request for the server, with and without sessions in its memory. */
async function compareRoutes(adapter: AdapterName): Promise<Comparison> {
  const names = Object.keys(applications) as ApplicationName[];
  const started = names.map(async (name) => [name, await BenchServer.start('requests', name, adapter)] as const);
  const servers = new Map(await Promise.all(started));
  const contenders = routes.map(async ({ name, application, path, loggedIn }) => {
    const server = servers.get(application)!;
    const cookie = loggedIn ? await server.cookieOf('/login') : undefined;
    const load = { path, connections: CONNECTIONS, duration: DURATION, ...(cookie ? { cookies: [cookie] } : {}) };
    const measure = async () => {
      const { processorTime, requests } = await server.load(load);
      return processorTime / requests;
    };
    return { name, measure };
  });
  const results = await runRounds(await Promise.all(contenders), ROUNDS, WARM_UP);
  for (const server of servers.values()) server.stop();
  printTable(`${adapter}, µs of processor time per request`, results);
  return { title: adapter, contenders: results.map(({ name, values }) => ({ name, figures: { nodeTime: values } })) };
}

const comparisons = [];
for (const adapter of Object.keys(adapters) as AdapterName[]) comparisons.push(await compareRoutes(adapter));
await writeResults('requests', comparisons);
