// Runs one step after the other, and those of a list two at a time. At the end it tells what came of each and how long
// it took, and counts all tests in the last line.
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { countsOf, testsOf } from './checks.mjs';
import { capture, onStopSignal, run } from './processes.mjs';

/** How a command is asked to write down its counts. */
const REPORTS = {
  jest: (file) => ['--json', `--outputFile=${file}`],
  checks: (file) => [`--outputFile=${file}`],
};

/**
 * An npm script and its arguments. `report`: whether Jest counts its tests, or checks.mjs. `env`: resolves to what its
 * environment has besides ours. `isNeeded`: without it, no other step makes sense.
 */
export function npm(script, { args = [], ...others } = {}) {
  return { title: ['npm run', script, ...args].join(' '), command: ['npm', 'run', script, '--', ...args], ...others };
}

/** Runs the steps; a list among them has steps that do not disturb each other. Resolves to the exit code. */
export async function runSteps(entries) {
  const folder = await mkdtemp(join(tmpdir(), 'nest-session-reports-'));
  const stop = new AbortController();
  const release = onStopSignal(() => stop.abort());
  const began = Date.now();
  const results = [];
  try {
    for (const entry of entries) {
      results.push(...(await (Array.isArray(entry) ? runTwo(entry, folder, stop) : runAlone(entry, folder))));
      if (stop.signal.aborted || results.some(({ isNeeded, failed }) => isNeeded && failed > 0)) break;
    }
  } finally {
    release();
    await rm(folder, { recursive: true, force: true });
  }
  return conclude(results, entries.flat().length, began);
}

async function runAlone(step, folder) {
  console.log(`\n== ${step.title}`);
  return [await runStep(step, folder, start)];
}

/** Two at a time. The output of each is printed when it has ended. */
async function runTwo(steps, folder, { signal }) {
  const waiting = [...steps];
  const results = [];
  const runNext = async () => {
    for (let step = waiting.shift(); step && !signal.aborted; step = waiting.shift()) {
      results.push(await runStep(step, folder, (...command) => printed(step.title, signal, ...command)));
    }
  };
  await Promise.all([runNext(), runNext()]);
  return results;
}

async function runStep({ title, command: [program, ...args], report, env, isNeeded }, folder, execute) {
  const began = Date.now();
  const reportFile = join(folder, `${randomUUID()}.json`);
  const code = await execute(program, [...args, ...(REPORTS[report]?.(reportFile) ?? [])], env);
  const counts = report ? await countsIn(reportFile) : countsOf([]);
  // What failed without a failed test, or could not be run at all, counts as one.
  if (code !== 0 && counts.failed === 0) counts.failed = 1;
  const seconds = secondsSince(began);
  console.log(`-- ${title}: ${duration(seconds)}`);
  return { title, seconds, isNeeded, ...counts };
}

async function start(program, args, env) {
  try {
    return await run(program, args, await env?.());
  } catch (error) {
    console.error(error.message);
    return 1;
  }
}

async function printed(title, signal, program, args, env) {
  try {
    const { code, output } = await capture(program, args, { signal, env: { ...process.env, ...(await env?.()) } });
    console.log(`\n== ${title}\n${output.trimEnd()}`);
    return code;
  } catch (error) {
    console.error(`\n== ${title}\n${error.message}`);
    return 1;
  }
}

async function countsIn(file) {
  const text = await readFile(file, 'utf8').catch(() => '{"passed":0,"failed":1,"skipped":0,"failures":[]}');
  const report = JSON.parse(text);
  return 'testResults' in report ? countsOf([{ checks: testsOf(report) }]) : report;
}

function conclude(results, wanted, began) {
  const sum = (field) => results.reduce((total, result) => total + result[field], 0);
  console.log('');
  for (const { title, seconds, failures, ...counts } of results) {
    console.log(`${duration(seconds).padStart(8)}  ${resultOf(counts).padEnd(7)}  ${title}`);
    for (const each of failures) console.log(each.replace(/^/gm, ' '.repeat(21)));
  }
  console.log(`${duration(secondsSince(began)).padStart(8)}  in all`);
  const left = wanted - results.length;
  if (left > 0) console.log(`FAILED: ${left} more steps were not run`);
  console.log(`\n${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped`);
  return sum('failed') === 0 && left === 0 ? 0 : 1;
}

/** A step that has skipped all of its tests has shown nothing. */
function resultOf({ passed, failed, skipped }) {
  if (failed > 0) return 'FAILED';
  return passed === 0 && skipped > 0 ? 'SKIPPED' : 'ok';
}

function secondsSince(began) {
  return Math.round((Date.now() - began) / 1000);
}

function duration(seconds) {
  return `${Math.floor(seconds / 60)}:${`${seconds % 60}`.padStart(2, '0')}`;
}
