// npm run site: builds the documentation as a site, into docs/site/dist. It fails if a link leads nowhere, and needs no
// network once the packages are installed.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { checkHeadings } from '../docs/site/check-headings.mjs';
import { writeMarkdown } from '../docs/site/write-markdown.mjs';
import { writePages } from '../docs/site/write-pages.mjs';
import { ensurePackages, ensureSitePackages } from './install.mjs';
import { main, root, runQuietly } from './processes.mjs';

const SITE = join(root, 'docs/site');

await main(async () => {
  await ensurePackages();
  await ensureSitePackages();
  // A package finds the types of the others where they are built.
  await runQuietly('npm', ['run', '--silent', 'build']);
  rmSync(join(SITE, 'pages'), { recursive: true, force: true });
  writePages(join(SITE, 'pages'));
  const { writeReference } = await import('../docs/site/reference.mjs');
  await writeReference(join(SITE, 'pages/reference'));
  await runQuietly(join(SITE, 'node_modules/.bin/vitepress'), ['build', SITE]);
  checkHeadings(join(SITE, 'dist'));
  writeMarkdown(join(SITE, 'pages'), join(SITE, 'dist'));
  console.log('The site is in docs/site/dist. To read it: npm run --prefix docs/site preview');
});
