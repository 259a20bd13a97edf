import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WorkerProcess } from './worker.process.js';

const PROGRAM = fileURLToPath(new URL('cluster.worker.mjs', import.meta.url));

/** What may be stored of a session. */
export interface Version {
  readonly id: string;
  readonly n: number;
  readonly principal: string | null;
  readonly ended?: true;
}

/** The place of one session: after each end, another one takes it. */
export interface Slot {
  readonly name: number;
  /** Several when the outcome of a write is unknown. */
  readonly versions: readonly Version[];
}

export interface End {
  readonly type: string;
  readonly id: string;
  readonly n: number | null;
}

export interface HeardEnd extends End {
  readonly dataLost: boolean;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** A call that took long or failed. */
export interface NotedCall {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly duration: number;
  /** -1: all of them. */
  readonly partition: number;
  readonly error: string | null;
}

interface WorkerOptions {
  readonly name: string;
  readonly group: string;
  readonly folder: string;
  readonly nodes: readonly { host: string; port: number }[];
  readonly slots: readonly object[];
}

/** An instance of cluster.worker.mjs, and what it has written to its journal. */
export class ClusterInstance {
  /** Ends that must be reported, and those that may be, because the outcome of a creation is unknown. */
  readonly ends: End[] = [];
  readonly possible: End[] = [];
  readonly events: HeardEnd[] = [];
  readonly calls: NotedCall[] = [];
  readonly problems: unknown[] = [];
  /** Number of calls, and of slots with an unknown outcome, when it settled last. */
  count = 0;
  unsettled = 0;
  readonly #slots = new Map<number, readonly Version[]>();
  #position = 0;
  #commands = 0;

  private constructor(
    private readonly worker: WorkerProcess,
    private readonly journal: string,
    readonly group: string,
  ) {}

  static async start({ name, group, folder, nodes, slots }: WorkerOptions): Promise<ClusterInstance> {
    const [file, journal] = [join(folder, `${name}.slots`), join(folder, `${name}.journal`)];
    await writeFile(file, JSON.stringify(slots));
    const environment = { NODES: JSON.stringify(nodes), GROUP: group, SLOTS: file, JOURNAL: journal };
    return new ClusterInstance(await WorkerProcess.start(environment, { program: PROGRAM }), journal, group);
  }

  /** Resolves when it has done a command. */
  async does(command: string, argument?: unknown): Promise<void> {
    const number = ++this.#commands;
    this.worker.tell(JSON.stringify([number, command, argument]));
    await this.worker.saysLine(new RegExp(`^done ${number}$`), { timeout: 180_000 });
  }

  /** Its slots, as far as the journal was read. */
  left(): Slot[] {
    return [...this.#slots].map(([name, versions]) => ({ name, versions }));
  }

  /** Reads what is new in the journal. */
  async read(): Promise<void> {
    const file = await open(this.journal);
    try {
      const { size } = await file.stat();
      const { buffer } = await file.read(Buffer.alloc(size - this.#position), 0, size - this.#position, this.#position);
      const end = buffer.lastIndexOf('\n') + 1;
      this.#position += end;
      for (const line of buffer.toString('utf8', 0, end).split('\n')) if (line !== '') this.#take(JSON.parse(line));
    } finally {
      await file.close();
    }
  }

  async end(): Promise<void> {
    await this.worker.end();
  }

  #take([kind, ...record]: [string, ...never[]]): void {
    if (kind === 'slot') this.#slots.set(record[0]!, record[1]!);
    else if (kind === 'calls') [this.count, this.unsettled] = record as unknown as [number, number];
    else if (kind === 'problem') this.problems.push(record);
    else if (kind === 'end' || kind === 'maybe') {
      const [type, id, n] = record as unknown as [string, string, number];
      (kind === 'end' ? this.ends : this.possible).push({ type, id, n });
    } else if (kind === 'event') {
      const [type, id, n, dataLost, at] = record as unknown as [string, string, number | null, boolean, number];
      this.events.push({ type, id, n, dataLost, at });
    } else {
      const [at, duration, partition, error] = record as unknown as [number, number, number, string | null];
      this.calls.push({ at, duration, partition, error });
    }
  }
}
