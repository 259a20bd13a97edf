// The demo as several processes on one port: `npm start -- --instances 2` runs this instead of the demo. An instance that is
// killed is started again.
import cluster from 'node:cluster';
import { fileURLToPath } from 'node:url';

// Milliseconds. Longer than the demo's lease on an event, so that the page shows how another instance takes it over.
const PAUSE = 10_000;

let isStopping = false;

cluster.setupPrimary({ exec: fileURLToPath(new URL('../apps/demo/dist/main.js', import.meta.url)), execArgv: [] });
for (let number = 1; number <= Number(process.env.INSTANCES); number++) start(number);

process.on('SIGTERM', () => {
  isStopping = true;
  for (const worker of Object.values(cluster.workers)) worker.kill('SIGTERM');
  endWhenAlone();
});

function start(number) {
  const worker = cluster.fork({ INSTANCE: number });
  // The list of workers forgets one at the later of both events.
  worker.on('disconnect', () => isStopping && endWhenAlone());
  worker.on('exit', (code, signal) => {
    if (isStopping) return endWhenAlone();
    // One that cannot even start would not do so later.
    if (signal === null) return process.exit(code);
    console.log(`Instance ${number} was ended by ${signal}, and starts again in ${PAUSE / 1000} s.`);
    setTimeout(() => !isStopping && start(number), PAUSE);
  });
}

function endWhenAlone() {
  if (Object.keys(cluster.workers).length === 0) process.exit(0);
}
