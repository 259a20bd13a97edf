import { once } from 'node:events';
import type { Writable } from 'node:stream';

// The characters that terminals treat as commands, line ends or changes of direction.
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;
const CLEAR_LINE = '\r\u001b[K';

type Terminal = Writable & { readonly isTTY?: boolean };

/** The exit code of a process: fine, could not run, has findings, has findings that a repair could not mend. */
export type ExitCode = 0 | 1 | 2 | 3;

/** What a command writes: its result to one stream, everything else to the other one. */
export class CommandOutput {
  readonly #closed = new AbortController();
  #hasProgress = false;

  /** `onFailure`: the result cannot be written, as on a full disk. */
  constructor(
    private readonly isJson: boolean,
    private readonly result: Terminal,
    private readonly others: Terminal,
    onFailure: (error: Error) => void = () => undefined,
  ) {
    result.on('error', (error: NodeJS.ErrnoException) => {
      this.#closed.abort();
      // The reader may have read enough, as `head` does. The work goes on.
      if (error.code !== 'EPIPE') onFailure(error);
    });
    others.on('error', () => undefined);
  }

  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  report(json: object, lines: Iterable<string>, code: ExitCode = 0): ExitCode {
    for (const line of this.isJson ? [JSON.stringify(json)] : lines) this.#write(line);
    return code;
  }

  /** A part of a result that has no end, as an object of its own or as a line. Resolves when there is room for more. */
  async event(json: object, line: string): Promise<void> {
    this.report(json, [line]);
    if (this.result.writableNeedDrain) await once(this.result, 'drain', { signal: this.closed }).catch(() => undefined);
  }

  /** What somebody should know who looks on, and a failure. */
  note(text: string): void {
    this.#endProgress();
    this.others.write(`${text.split('\n').map(printable).join('\n')}\n`);
  }

  /** For a person who waits at a terminal. The last one stays in sight until there is another line. */
  progress(text: string): void {
    if (!this.others.isTTY) return;
    this.#hasProgress = true;
    this.others.write(CLEAR_LINE + printable(text));
  }

  end(): void {
    this.#endProgress();
  }

  #write(line: string): void {
    this.#endProgress();
    if (!this.closed.aborted) this.result.write(`${printable(line)}\n`);
  }

  #endProgress(): void {
    if (this.#hasProgress) this.others.write(CLEAR_LINE);
    this.#hasProgress = false;
  }
}

/** Also JSON, which means the same then. */
function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
