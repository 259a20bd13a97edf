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

/** Compiles these files of a folder, and resolves to what the compiler prints: nothing, unless it reports errors. */
export async function compile(folder: string, files: readonly string[], options: object = {}): Promise<string> {
  const compilerOptions = { composite: false, declaration: false, declarationMap: false, sourceMap: false, ...options };
  const config = { extends: join(ROOT, 'tsconfig.base.json'), compilerOptions, files };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config));
  const tsc = Program.start([join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder]);
  await tsc.exit;
  return tsc.output;
}
