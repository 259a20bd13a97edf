import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { BoundProcess, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';

LeakGuard.install();

const BUILT = fileURLToPath(new URL('../dist/index.js', import.meta.url));
const RUNS_FOR_EVER = 'console.log(`I am ${process.pid}.`); setInterval(() => {}, 1000);';
const PID = /I am (\d+)\./;

const node = (code: string) => [process.execPath, '--input-type=module', '--eval', code];

function runs(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it('runs a program until it is stopped', async () => {
  const bound = BoundProcess.start(node(RUNS_FOR_EVER));
  const pid = Number(await bound.printed(PID));
  expect(runs(pid)).toBe(true);
  await bound.stop();
  expect(runs(pid)).toBe(false);
});

it('says what the program has printed when that ends before it prints what is waited for', async () => {
  const bound = BoundProcess.start(node('console.error("No port is free."); process.exit(1);'));
  await expect(bound.printed(PID)).rejects.toThrow('No port is free.');
});

it('ends the program when the process that started it is killed', async () => {
  const starts = `import { BoundProcess } from ${JSON.stringify(BUILT)};
    const bound = BoundProcess.start(${JSON.stringify(node(RUNS_FOR_EVER))});
    console.log(await bound.printed(${PID}));`;
  const [program, ...args] = node(starts);
  const starter = spawn(program!, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [printed] = (await once(starter.stdout, 'data')) as [Buffer];
  const pid = Number(printed.toString());
  expect(runs(pid)).toBe(true);
  starter.kill('SIGKILL');
  await once(starter, 'close');
  await eventually(() => !runs(pid));
});
