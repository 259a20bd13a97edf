// The programs of docs/spring-boot.md, as they are printed.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { root } from '../processes.mjs';

/**
 * Writes the files under a heading of the second level: the line above a block, such as "`src/main.ts`:", names its file.
 * Those of Java get into the folder `java`.
 */
export async function writePrograms(heading, folder) {
  const page = await readFile(join(root, 'docs/spring-boot.md'), 'utf8');
  const [, after = ''] = page.split(`\n## ${heading}\n`);
  const [section] = after.split(/^## /m);
  const blocks = [...section.matchAll(/^`([\w./-]+)`:\n\n```\w+\n([\s\S]*?)^```$/gm)];
  if (blocks.length === 0) throw new Error(`docs/spring-boot.md has no program under "${heading}"`);
  for (const [, name, content] of blocks) {
    const path = join(folder, name.endsWith('.ts') ? '' : 'java', name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
  }
}
