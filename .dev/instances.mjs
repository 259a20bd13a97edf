// The demo as several processes on one port, and beside it as many of the shop with express-session: `npm start` runs
// this. An instance that is killed is started again.
import cluster from 'node:cluster';
import { fileURLToPath } from 'node:url';

// Milliseconds. Longer than the demo's lease on an event, so that the page shows how another instance takes it over.
const PAUSE = 10_000;

const PROGRAMS = { '': 'main.js', ' of express-session': 'sides/express-session/main.js' };

let isStopping = false;

for (const [whose, file] of Object.entries(PROGRAMS)) {
  const exec = fileURLToPath(new URL(`../apps/demo/dist/${file}`, import.meta.url));
  for (let number = 1; number <= Number(process.env.INSTANCES); number++) start(number, whose, exec);
}

process.on('SIGTERM', () => {
  isStopping = true;
  for (const worker of Object.values(cluster.workers)) worker.kill('SIGTERM');
  endWhenAlone();
});

function start(number, whose, exec) {
  cluster.setupPrimary({ exec, execArgv: [] });
  const worker = cluster.fork({ INSTANCE: number });
  // The list of workers forgets one at the later of both events.
  worker.on('disconnect', () => isStopping && endWhenAlone());
  worker.on('exit', (code, signal) => {
    if (isStopping) return endWhenAlone();
    // One that cannot even start would not do so later.
    if (signal === null) return process.exit(code);
    console.log(`Instance ${number}${whose} was ended by ${signal}, and starts again in ${PAUSE / 1000} s.`);
    setTimeout(() => !isStopping && start(number, whose, exec), PAUSE);
  });
}

function endWhenAlone() {
  if (Object.keys(cluster.workers).length === 0) process.exit(0);
}
