import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '@nest-session/testing';

/** The top of the repository. */
const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

// Enough time to build the demo on a busy machine.
const SLOWLY = { timeout: 180_000 };

/** Variables of the demo that this process may have, and that the demo must not see. */
const UNSET = Object.fromEntries(['HOST', 'PORT', 'REDIS_URL', 'SESSION_STORE'].map((name) => [name, undefined]));

/** `npm start` as in a terminal, with a folder of its own for temporary files. */
export class NpmStart {
  /** Resolves to the exit code and the signal. */
  readonly exit: Promise<unknown[]>;
  output = '';

  private constructor(
    private readonly child: ChildProcess,
    /** In which leftovers would be. */
    readonly temporary: string,
  ) {
    this.exit = once(child, 'close');
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    }
  }

  static async run({ args = [], env = {} }: { args?: string[]; env?: NodeJS.ProcessEnv } = {}): Promise<NpmStart> {
    const temporary = await mkdtemp(join(tmpdir(), 'npm-start-'));
    const all = { ...process.env, ...UNSET, TMPDIR: temporary, NO_COLOR: '1', FORCE_COLOR: undefined, ...env };
    // Detached: a process group of its own, as in a terminal.
    const options = { cwd: ROOT, env: all, detached: true, stdio: ['ignore', 'pipe', 'pipe'] as ('ignore' | 'pipe')[] };
    return new NpmStart(spawn('npm', ['start', '--', ...args], options), temporary);
  }

  /** Resolves to the address of the demo as soon as it prints it. */
  origin(): Promise<string> {
    return eventually(() => {
      const address = /^Open (http:\/\/127\.0\.0\.1:\d+)$/m.exec(this.output)?.[1];
      if (!address) throw new Error(`No address in: ${this.output}`);
      return address;
    }, SLOWLY);
  }

  /** Resolves to its address over https, with the variables `TLS_CERT` and `TLS_KEY`. */
  originOfTls(): Promise<string> {
    return eventually(() => {
      const address = /^Over https: (https:\/\/localhost:\d+)$/m.exec(this.output)?.[1];
      if (!address) throw new Error(`No address of https in: ${this.output}`);
      return address;
    }, SLOWLY);
  }

  /** The process ids of so many instances that run, by their log lines. */
  instances(count: number): Promise<number[]> {
    return eventually(() => {
      const lines = this.output.matchAll(/\[Nest\] (\d+) .*successfully started/g);
      const pids = [...new Set([...lines].map(([, pid]) => Number(pid)))].filter(isRunning);
      if (pids.length < count) throw new Error(`${pids.length} instances in: ${this.output}`);
      return pids;
    }, SLOWLY);
  }

  /** The process ids of all that was started, by the folder in their environment. For Linux. */
  async processes(): Promise<number[]> {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const found = await Promise.all(
      pids.map(async (pid) => {
        const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
        return environment.split('\0').includes(`TMPDIR=${this.temporary}`) ? [Number(pid)] : [];
      }),
    );
    return found.flat();
  }

  leftovers(): Promise<string[]> {
    return readdir(this.temporary);
  }

  /** Sends the signal to all processes of the group, as a terminal does. */
  ctrlC(): void {
    process.kill(-this.child.pid!, 'SIGINT');
  }

  /** Ends it, if it has not ended, and removes its folder. */
  async stop(): Promise<void> {
    const isRunning = () => this.child.exitCode === null && this.child.signalCode === null;
    if (isRunning()) this.ctrlC();
    const lastResort = setTimeout(() => isRunning() && process.kill(-this.child.pid!, 'SIGKILL'), 20_000);
    await this.exit;
    clearTimeout(lastResort);
    await rm(this.temporary, { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
