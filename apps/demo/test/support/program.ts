import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The top of the repository. */
export const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

/** A process of Node.js, with what it has printed. */
export class Program {
  readonly child: ChildProcess;
  /** Resolves to the exit code and the signal. */
  readonly exit: Promise<unknown>;
  #output = '';

  private constructor(child: ChildProcess) {
    this.child = child;
    this.exit = once(child, 'close');
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (this.#output += text));
  }

  static start(args: readonly string[], env: NodeJS.ProcessEnv = {}, cwd?: string): Program {
    const all = { ...process.env, ...env, NO_COLOR: '1', FORCE_COLOR: undefined };
    return new Program(spawn(process.execPath, args, { cwd, env: all, stdio: ['ignore', 'pipe', 'pipe'] }));
  }

  /** What it has printed until now, on both streams. */
  get output(): string {
    return this.#output;
  }
}

/**
 * Compiles projects, all in one run of the compiler, which reads the declarations of packages once. A project has the path
 * of its tsconfig.json, and files beside that. Resolves to what the compiler prints: nothing, unless it reports errors.
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
