import { cpus } from 'node:os';
import { BenchServer } from './bench.server.js';
import { type AdapterName, adapters, type ApplicationName, applications } from './requests.applications.js';
import { printTable, runRounds } from './rounds.js';

const REQUESTS = 4000;
const ROUNDS = 15;
const WARM_UP = 5;

interface Route {
  readonly name: string;
  readonly application: ApplicationName;
  readonly path: string;
  readonly loggedIn?: boolean;
}

const routes: readonly Route[] = [
  { name: 'Nest', application: 'bare', path: '/plain' },
  { name: '+ an interceptor that does nothing', application: 'interceptor', path: '/plain' },
  { name: '  + AsyncLocalStorage', application: 'context', path: '/plain' },
  { name: '+ SessionModule: excluded', application: 'session', path: '/excluded' },
  { name: '+ SessionModule: no cookie, not used', application: 'session', path: '/plain' },
  { name: '+ SessionModule: an attribute is read', application: 'session', path: '/read', loggedIn: true },
];

/** The cost of a request for the server, with and without sessions in its memory. */
async function compareRoutes(adapter: AdapterName): Promise<void> {
  const names = Object.keys(applications) as ApplicationName[];
  const started = names.map(async (name) => [name, await BenchServer.start(name, adapter)] as const);
  const servers = new Map(await Promise.all(started));
  const contenders = routes.map(async ({ name, application, path, loggedIn }) => {
    const server = servers.get(application)!;
    const cookie = loggedIn ? await server.cookieOf('/login') : undefined;
    return { name, measure: () => server.costOf(REQUESTS, path, cookie) };
  });
  const results = await runRounds(await Promise.all(contenders), ROUNDS, WARM_UP);
  for (const server of servers.values()) server.stop();
  printTable(`${adapter}, µs of processor time per request`, results);
}

console.log(`Node.js ${process.version}, ${cpus().length} x ${cpus()[0]?.model}`);
for (const adapter of Object.keys(adapters) as AdapterName[]) await compareRoutes(adapter);
