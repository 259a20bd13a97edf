import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const SOURCE = fileURLToPath(new URL('./program.clock.c', import.meta.url));

/** A settable wall clock for other programs: a preloaded library changes the time that they read. */
export class ProgramClock {
  #offset = 0;
  /** Epoch milliseconds; 0 while it runs. */
  #standing = 0;
  #environment: Promise<Record<string, string>> | undefined;
  readonly #library: string;
  readonly #settingFile: string;

  /** `home`: a folder that exists as long as the programs run. */
  constructor(private readonly home: string) {
    this.#library = join(home, 'clock.so');
    this.#settingFile = join(home, 'clock');
  }

  /**
   * The environment of each program with this clock.
   * @throws Error that names the missing programs
   */
  environment(): Promise<Record<string, string>> {
    // What runs already has both files mapped. A server that stops takes its folder with it.
    if (!existsSync(this.#library)) this.#environment = undefined;
    return (this.#environment ??= this.#make());
  }

  async #make(): Promise<Record<string, string>> {
    if (process.platform !== 'linux') {
      throw new Error(`The clock of a program can be stepped on Linux alone, and this is ${process.platform}`);
    }
    await mkdir(this.home, { recursive: true });
    await compile(SOURCE, this.#library);
    await writeFile(this.#settingFile, this.#content());
    const preloaded = [this.#library, process.env['LD_PRELOAD']].filter(Boolean).join(':');
    return { LD_PRELOAD: preloaded, PROGRAM_CLOCK: this.#settingFile };
  }

  /** Moves the clock by this many milliseconds. Commands after it resolves are executed at the new time. */
  async step(ms: number): Promise<void> {
    if (!Number.isInteger(ms)) throw new RangeError('A clock is stepped by whole milliseconds');
    this.#offset += ms;
    if (this.#standing > 0) this.#standing += ms;
    await this.#set();
  }

  /**
   * Stops the clock, at a time of the clock of this process. Commands after it resolves are executed at the same time,
   * until the clock is stepped.
   */
  async stop(at = Date.now()): Promise<void> {
    this.#standing = at + this.#offset;
    await this.#set();
  }

  async #set(): Promise<void> {
    // In place: the programs have the file mapped, and must never find it empty.
    const file = await open(this.#settingFile, 'r+');
    try {
      const content = this.#content();
      await file.write(content, 0, content.length, 0);
    } finally {
      await file.close();
    }
  }

  #content(): Uint8Array {
    return new Uint8Array(BigInt64Array.of(BigInt(this.#offset), BigInt(this.#standing)).buffer);
  }
}

async function compile(source: string, library: string): Promise<void> {
  try {
    await promisify(execFile)('gcc', ['-O1', '-shared', '-fPIC', '-o', library, source], { env: process.env });
  } catch (error) {
    const { code, stderr } = error as NodeJS.ErrnoException & { stderr?: string };
    throw new Error(
      'The clock of a program cannot be stepped without a C compiler and the headers of the C library ' +
        `(Debian and Ubuntu: apt-get install gcc libc6-dev): gcc failed (${code}). ${stderr ?? ''}`.trim(),
      { cause: error },
    );
  }
}
