// npm run setup: only installs what `npm start` and `npm test` would install.
import { ensureBeanstalkd, ensureChromium, ensureCompiler, ensurePackages, ensureRedis } from './install.mjs';
import { main } from './processes.mjs';

await main(async () => {
  await ensurePackages();
  await ensureRedis();
  await ensureBeanstalkd();
  await ensureCompiler();
  await ensureChromium();
});
