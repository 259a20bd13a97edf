import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Program } from '@nest-session/test-infrastructure';

/** The top of the repository. */
export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * Compiles projects, all in one run of the compiler, which reads the declarations of packages once. A project has the
 * path of its tsconfig.json, and files beside that. Resolves to what the compiler prints: nothing, unless it reports
 * errors.
 */
export async function compile(projects: ReadonlyMap<string, readonly string[]>, options: object = {}): Promise<string> {
  const compilerOptions = { composite: false, declaration: false, declarationMap: false, sourceMap: false, ...options };
  for (const [path, files] of projects) {
    await writeFile(path, JSON.stringify({ extends: join(ROOT, 'tsconfig.base.json'), compilerOptions, files }));
  }
  const tsc = Program.start([join(ROOT, 'node_modules/typescript/bin/tsc'), '--build', ...projects.keys()]);
  await tsc.exit;
  return tsc.output;
}
