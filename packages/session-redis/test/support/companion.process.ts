import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { HttpAgent } from '@nest-session/testing';
import ts from 'typescript';
import { WorkerProcess } from './worker.process.js';

const SOURCES = fileURLToPath(new URL('../companions', import.meta.url));
const CACHE = fileURLToPath(new URL('../../../../node_modules/.cache', import.meta.url));

const compilerOptions: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.ESNext,
  verbatimModuleSyntax: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
};

export interface CompanionOptions {
  /** `<name>.companion.ts` in `test/companions`. */
  readonly name: string;
  readonly adapter: 'express' | 'fastify';
  readonly redisUrl: string;
}

/**
 * An application with a companion package, in a process of its own. It runs the built packages. Use it for a package
 * that Jest cannot load, such as a CommonJS one that requires NestJS 12.
 */
export class CompanionProcess {
  private constructor(
    private readonly worker: WorkerProcess,
    private readonly folder: string,
    readonly url: string,
  ) {}

  static async start({ name, adapter, redisUrl }: CompanionOptions): Promise<CompanionProcess> {
    const folder = await compiled();
    const environment = { COMPANION: name, ADAPTER: adapter, REDIS_URL: redisUrl };
    const listening = /^listening on (.+)$/;
    const options = { program: join(folder, 'main.js'), ready: listening };
    const worker = await WorkerProcess.start(environment, options);
    const [url] = worker.lines.flatMap((line) => listening.exec(line)?.slice(1) ?? []);
    return new CompanionProcess(worker, folder, url!);
  }

  /** What the application has printed. */
  get lines(): string[] {
    return this.worker.lines;
  }

  agent(): HttpAgent {
    return new HttpAgent(this.url);
  }

  async stop(): Promise<void> {
    await this.worker.end();
    await rm(this.folder, { recursive: true });
  }
}

/** The sources in JavaScript, in a folder from which Node.js finds the packages. */
async function compiled(): Promise<string> {
  await mkdir(CACHE, { recursive: true });
  const folder = await mkdtemp(join(CACHE, 'companions-'));
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  const files = (await readdir(SOURCES)).filter((file) => !file.endsWith('.spec.ts'));
  for (const file of files) {
    const source = await readFile(join(SOURCES, file), 'utf8');
    const { outputText } = ts.transpileModule(source, { compilerOptions });
    await writeFile(join(folder, file.replace(/\.ts$/, '.js')), outputText);
  }
  return folder;
}
