import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { eventually, freePort } from '@nest-session/testing';

// Runs Prometheus until the standard input ends. That also happens when this process is killed.
const UNTIL_INPUT_ENDS = '"$@" & read -r _; kill -9 $!';

/** A series of the result of a query. */
export interface PrometheusSample {
  readonly metric: Readonly<Record<string, string>>;
  /** Epoch seconds, and the value as text. */
  readonly value: readonly [number, string];
}

/**
 * A real Prometheus on a free port of 127.0.0.1, in a folder of its own. The program is the environment variable
 * `PROMETHEUS`, or else `prometheus` on the PATH; its `promtool` lies beside it.
 */
export class PrometheusServer {
  readonly #shell: ChildProcess;
  #output = '';

  private constructor(
    private readonly folder: string,
    private readonly port: number,
  ) {
    const configuration = [`--config.file=${join(folder, 'prometheus.yml')}`, `--storage.tsdb.path=${folder}/data`];
    const command = [program(), ...configuration, `--web.listen-address=127.0.0.1:${port}`, '--log.level=error'];
    this.#shell = spawn('/bin/sh', ['-c', UNTIL_INPUT_ENDS, 'sh', ...command], { stdio: ['pipe', 'pipe', 'pipe'] });
    for (const stream of [this.#shell.stdout, this.#shell.stderr]) stream!.on('data', (text) => (this.#output += text));
  }

  /** Whether there is a Prometheus on this machine. */
  static get isInstalled(): boolean {
    return spawnSync(program(), ['--version']).status === 0;
  }

  /** Starts it with a configuration, as prometheus.yml would have it. */
  static async start(configuration: object): Promise<PrometheusServer> {
    const folder = await mkdtemp(join(tmpdir(), 'nest-session-prometheus-'));
    // JSON is YAML.
    await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(configuration));
    const server = new PrometheusServer(folder, await freePort());
    await server.#isReady().catch(async (error: unknown) => {
      await server.stop();
      throw new Error(`Prometheus does not start: ${server.#output}`, { cause: error });
    });
    return server;
  }

  /** Runs promtool. Resolves to its exit code, and to what it prints. */
  static async promtool(...args: readonly string[]): Promise<{ code: number; output: string }> {
    const path = program().includes('/') ? join(dirname(program()), 'promtool') : 'promtool';
    return new Promise((resolve) => {
      const child = execFile(path, args, (_error, stdout, stderr) =>
        resolve({ code: child.exitCode ?? -1, output: stdout + stderr }),
      );
    });
  }

  /** The series that a query has now. @throws Error when the query cannot be read */
  async query(query: string): Promise<PrometheusSample[]> {
    const { result } = (await this.get(`query?query=${encodeURIComponent(query)}`)) as { result: PrometheusSample[] };
    return result;
  }

  /** What its API has under a path behind `/api/v1/`. */
  async get(path: string): Promise<unknown> {
    const response = await fetch(`http://127.0.0.1:${this.port}/api/v1/${path}`);
    const { status, data, error } = (await response.json()) as { status: string; data: unknown; error?: string };
    if (status !== 'success') throw new Error(error);
    return data;
  }

  async stop(): Promise<void> {
    if (this.#shell.exitCode === null) {
      this.#shell.stdin!.end();
      await once(this.#shell, 'close');
    }
    await rm(this.folder, { recursive: true });
  }

  async #isReady(): Promise<void> {
    await eventually(async () => (await fetch(`http://127.0.0.1:${this.port}/-/ready`)).ok);
  }
}

function program(): string {
  return process.env['PROMETHEUS'] ?? 'prometheus';
}
