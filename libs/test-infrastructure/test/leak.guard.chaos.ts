import { spawn } from 'node:child_process';
import { once } from 'node:events';

it('the LeakGuard fails only a test file that leaves something open', async () => {
  const results = await runJest('libs/test-infrastructure/test/fixtures/.*\\.fixture\\.ts$');
  const statuses = results.testResults.map(({ name, status }) => [name.replace(/.*\//, ''), status]);
  expect(Object.fromEntries(statuses)).toEqual({ 'leaky.fixture.ts': 'failed', 'tidy.fixture.ts': 'passed' });
  const [leaky] = results.testResults.filter(({ status }) => status === 'failed');
  expect(leaky?.message).toMatch(
    /Left behind and still open:\s+1\. server on 127\.0\.0\.1:\d+\s+by .*leaky\.fixture\.ts:8/,
  );
});

interface JestResults {
  readonly testResults: readonly { readonly name: string; readonly status: string; readonly message: string }[];
}

/** Runs test files in another Jest, with the configuration of this one. */
async function runJest(testRegex: string): Promise<JestResults> {
  const jest = spawn(
    process.execPath,
    ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--json', '--forceExit', '--testRegex', testRegex],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
  let output = '';
  jest.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  await once(jest, 'close');
  return JSON.parse(output) as JestResults;
}
