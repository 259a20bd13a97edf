// What was checked in which combination, and with which result: rows of a table.
import { writeFile } from 'node:fs/promises';
import { stripVTControlCharacters } from 'node:util';

export function check(name, isOk) {
  return { name, result: isOk ? 'ok' : 'not ok' };
}

/** What Jest's report (`--json`) says of each test, and of each file that could not be run. */
export function testsOf({ testResults }) {
  const results = { passed: 'ok', failed: 'not ok', pending: 'skipped', todo: 'skipped' };
  return testResults.flatMap(({ name, status, assertionResults: tests }) =>
    tests.length === 0 && status === 'failed'
      ? [check(name, false)]
      : tests.map(({ fullName, status: result, failureMessages: reasons }) => ({
          name: [fullName, ...reasons.map(shortened)].join('\n'),
          result: results[result],
        })),
  );
}

/** The lines before the stack: why a test failed, when the output of its step is too long to be looked through. */
function shortened(reason) {
  const lines = stripVTControlCharacters(reason).split('\n');
  const stack = lines.findIndex((line) => /^\s+at /.test(line));
  return lines
    .slice(0, stack === -1 ? undefined : stack)
    .filter((line) => line.trim())
    .slice(0, 8)
    .join('\n');
}

/** Prints what was found, and why where something is not right. Returns the row. */
export function report(combination, { checks, output }) {
  const row = { combination, checks };
  const lines = checks.map(({ name, result }) => `${result} - ${name}`);
  const reasons = countsOf([row]).failed > 0 ? [output] : [];
  console.log([`\n== ${combination.join(' ')}`, ...lines, ...reasons].join('\n'));
  return row;
}

/** How many checks passed, failed and were skipped, and which failed. */
export function countsOf(rows) {
  const named = rows.flatMap(({ combination = [], checks }) =>
    checks.map(({ name, result }) => ({ name: [...combination, name].join(' '), result })),
  );
  const of = (wanted) => named.filter(({ result }) => result === wanted);
  const failures = of('not ok').map(({ name }) => name);
  return { passed: of('ok').length, failed: failures.length, skipped: of('skipped').length, failures };
}

/** Prints the table and the counts. Resolves to the exit code. */
export async function conclude(rows, outputFile) {
  console.log(`\n${table(rows)}`);
  return sumUp(rows, outputFile);
}

/** Prints the counts, and writes them into a file if there is one. Resolves to the exit code. */
export async function sumUp(rows, outputFile) {
  const total = countsOf(rows);
  console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  if (outputFile) await writeFile(outputFile, JSON.stringify(total));
  return total.failed === 0 ? 0 : 1;
}

function table(rows) {
  const lines = rows.map((row) => {
    const { passed, failed } = countsOf([row]);
    return [...row.combination, `${passed} passed`, `${failed} failed`];
  });
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  return lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column])).join('  ')).join('\n');
}
