// npm run setup: only installs what `npm start` and `npm test` would install.
import { ensureChromium, ensureCompiler, ensurePackages, ensureRedis } from './install.mjs';
import { main } from './processes.mjs';

await main(async () => {
  await ensurePackages();
  await ensureRedis();
  await ensureCompiler();
  await ensureChromium();
});
