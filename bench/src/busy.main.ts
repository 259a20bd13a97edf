import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';

// A program that only takes processor time. Argument: the share of a processor. It works in bursts as long as a batch
// of claims takes Redis, and tells on request how many of them the system has stretched to more than 3 ms.
const BURST = 0.7;
const LONG = 3;

const share = Number(process.argv[2]);
let long = 0;
process.on('message', () => process.send!(long));
process.on('disconnect', () => process.exit());

const began = performance.now();
for (let bursts = 1; ; bursts++) {
  const from = performance.now();
  while (performance.now() - from < BURST);
  if (performance.now() - from > LONG) long++;
  await (bursts * BURST > share * (performance.now() - began) ? sleep(1) : turn());
}
