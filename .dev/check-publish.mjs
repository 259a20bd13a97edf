// npm run check:publish: what would be published can be used, by its exports and its types.
import { main, run } from './processes.mjs';

await main(async () => {
  let failures = 0;
  for (const folder of [
    'packages/session-core',
    'packages/session-redis',
    'packages/session-express',
    'packages/session-websockets',
    'libs/testing',
  ]) {
    failures += await run('node_modules/.bin/publint', ['run', folder, '--strict']);
    // Every package is ESM only: CommonJS applications load it with Node's require(esm).
    failures += await run('node_modules/.bin/attw', ['--pack', folder, '--profile', 'esm-only']);
  }
  return failures === 0 ? 0 : 1;
});
