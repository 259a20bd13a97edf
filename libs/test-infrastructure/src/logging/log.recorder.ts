import type { LoggerService } from '@nestjs/common';

/** Records the log lines instead of printing them: `error Session The session store failed ...`. */
export class LogRecorder implements LoggerService {
  readonly lines: string[] = [];

  log(): void {}

  warn(...args: unknown[]): void {
    this.#record('warn', args);
  }

  error(...args: unknown[]): void {
    this.#record('error', args);
  }

  matching(pattern: RegExp): string[] {
    return this.lines.filter((line) => pattern.test(line));
  }

  #record(level: string, args: unknown[]): void {
    this.lines.push([level, ...args.map((arg) => (arg instanceof Error ? arg.stack : String(arg)))].join(' '));
  }
}
