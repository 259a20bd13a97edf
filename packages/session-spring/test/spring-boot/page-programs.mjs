// The programs of docs/spring-boot.md, as they are printed.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { root } from '../../../../.dev/processes.mjs';

/**
 * Writes the files under a heading of the second level: the line above a block, such as "`src/main.ts`:", names its
 * file. Those of Java get into the folder `java`, where each program has the only pom.xml of the page.
 */
export async function writePrograms(heading, folder) {
  const page = await readFile(join(root, 'docs/spring-boot.md'), 'utf8');
  const [, after = ''] = page.split(`\n## ${heading}\n`);
  const [section] = after.split(/^## /m);
  const programs = blocksIn(section);
  if (programs.length === 0) throw new Error(`docs/spring-boot.md has no program under "${heading}"`);
  const pom = blocksIn(page).filter(([name]) => name === 'pom.xml');
  for (const [name, content] of [...pom, ...programs]) {
    const path = join(folder, name.endsWith('.ts') ? '' : 'java', name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
  }
}

function blocksIn(text) {
  const blocks = text.matchAll(/^`([\w./-]+)`:\n\n```\w+\n([\s\S]*?)^```$/gm);
  return [...blocks].map(([, name, content]) => [name, content]);
}
