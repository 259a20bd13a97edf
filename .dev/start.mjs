// npm start: the demo on a private Redis, or on that of REDIS_URL, as two processes, beside a shop with
// express-session. With TLS_CERT and TLS_KEY, also over https. With --instances 3: as three processes. With --watch: as one, again whenever a source file changes,
// without that shop.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { parseArgs } from 'node:util';
import { ensurePackages, ensureRedis } from './install.mjs';
import { main, onStopSignal, root, runQuietly } from './processes.mjs';
import { startTlsProxy } from './tls-proxy.mjs';

// Other machines reach the demo only if HOST says so.
const HOST = process.env.HOST || '127.0.0.1';
const USUAL_PORT = 3000;
const USUAL_TLS_PORT = 3443;
const STOP_TIMEOUT = 10_000;

await main(async () => {
  const { watch, instances } = readArguments();
  await ensurePackages();
  await runQuietly('npm', ['run', '--silent', 'build']);
  const told = new AbortController();
  onStopSignal(() => told.abort());
  onEndOfNpm(() => told.abort());
  const redis = process.env.REDIS_URL ? undefined : await startRedis();
  const compilers = watch ? startCompilers() : [];
  let proxy;
  try {
    const memory = process.env.REDIS_URL ? {} : { SESSION_STORE: 'memory' };
    const store = redis ? { REDIS_URL: redis.url, OWN_REDIS: 'yes' } : memory;
    // In memory, each would have sessions of its own.
    const isInMemory = 'SESSION_STORE' in store;
    const INSTANCES = isInMemory ? 1 : instances;
    const env = { ...process.env, ...store, HOST, PORT: `${await choosePort()}`, INSTANCES: `${INSTANCES}` };
    const isAlone = watch || isInMemory;
    if (!isAlone) env.EXPRESS_SESSION_URL = `http://127.0.0.1:${await freePort(0, '127.0.0.1')}`;
    proxy = await serveTls(env);
    return await runDemo(env, { told: told.signal, watch, isAlone });
  } finally {
    proxy?.stop();
    for (const compiler of compilers) compiler.kill();
    await redis?.stop();
  }
});

function readArguments() {
  const { values } = parseArgs({ options: { watch: { type: 'boolean' }, instances: { type: 'string' } } });
  const { watch = false } = values;
  const { instances = watch ? '1' : '2' } = values;
  if (!/^[1-8]$/.test(instances)) throw new Error(`--instances is ${instances}: it must be a number from 1 to 8.`);
  const { PORT } = process.env;
  if (PORT && !(/^\d+$/.test(PORT) && Number(PORT) < 65_536)) {
    throw new Error(`PORT is ${PORT}: it must be a number from 0 to 65535.`);
  }
  if (watch && instances !== '1') throw new Error('--watch runs one instance: leave out --instances.');
  return { watch, instances: Number(instances) };
}

/** npm hands on SIGINT and SIGTERM; when another signal ends it, we only see that our parent is not npm any more. */
function onEndOfNpm(stop) {
  const npm = process.ppid;
  if (process.env.npm_lifecycle_event) setInterval(() => process.ppid !== npm && stop(), 500).unref();
}

/** A Redis of our own, which ends when we do; undefined where none can be had. */
async function startRedis() {
  try {
    process.env.REDIS_SERVER = await ensureRedis();
    const { RedisServer } = await import('../libs/testing/dist/index.js');
    return await RedisServer.start();
  } catch (error) {
    console.warn(`\nWITHOUT REDIS: sessions are kept in memory and end with this process.\n${error.message}\n`);
    return undefined;
  }
}

/** Of the Lua scripts, which become TypeScript, and of TypeScript. */
function startCompilers() {
  return [
    ['.dev/embed-scripts.mjs', '--watch'],
    ['node_modules/typescript/bin/tsc', '-b', '--watch', '--preserveWatchOutput', 'apps/demo'],
  ].map((args) => spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] }));
}

/** https in front of the demo, if the environment names a certificate; undefined without one. */
async function serveTls(env) {
  const { TLS_CERT: cert, TLS_KEY: key } = process.env;
  if (!cert || !key) return undefined;
  const port = process.env.TLS_PORT ?? (await freePort(USUAL_TLS_PORT));
  const proxy = await startTlsProxy({ cert, key, port, host: HOST }, { host: HOST, port: env.PORT });
  env.HOSTS = [process.env.HOSTS, `localhost:${proxy.port}`].filter(Boolean).join();
  console.log(`Over https: https://localhost:${proxy.port}`);
  return proxy;
}

/** Resolves to the demo's exit code; 0 when it ended because we were told to stop. */
async function runDemo(env, { told, watch, isAlone }) {
  if (told.aborted) return 0;
  const program = isAlone ? 'apps/demo/dist/main.js' : '.dev/instances.mjs';
  const args = ['--import', './.dev/end-with-parent.mjs', program];
  if (watch) args.unshift('--watch', '--watch-preserve-output');
  // Detached, that is out of reach of the terminal's Ctrl-C: the demo hears of it once, from us.
  const demo = spawn(process.execPath, args, { cwd: root, env, detached: true, stdio: ['pipe', 'inherit', 'inherit'] });
  told.addEventListener('abort', () => {
    demo.kill('SIGTERM');
    setTimeout(() => demo.kill('SIGKILL'), STOP_TIMEOUT).unref();
  });
  const [code] = await once(demo, 'exit');
  return told.aborted ? 0 : (code ?? 1);
}

/** The one of the environment; else the usual one, or any other where that is taken. */
async function choosePort() {
  if (process.env.PORT) return process.env.PORT;
  const port = await freePort(USUAL_PORT);
  if (port !== USUAL_PORT) console.log(`Port ${USUAL_PORT} is taken, ${port} is used instead.`);
  return port;
}

/** The port itself where it is free, else any other. */
async function freePort(port, host = HOST) {
  const server = createServer().listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    if (error.code === 'EADDRINUSE' && port !== 0) return freePort(0, host);
    throw error;
  }
  const { port: found } = server.address();
  server.close();
  return found;
}
