import { Logger, type LoggerService } from '@nestjs/common';

/** Remembers every line that is logged, of whatever level and with whatever comes with it. */
export class LineRecorder implements LoggerService {
  readonly lines: string[] = [];
  readonly log = (...args: unknown[]) => this.#record(args);
  readonly warn = this.log;
  readonly error = this.log;
  readonly debug = this.log;
  readonly verbose = this.log;

  /** From now on it is the logger of the process, until another one is. */
  install(): this {
    Logger.overrideLogger(this);
    return this;
  }

  matching(pattern: RegExp): string[] {
    return this.lines.filter((line) => pattern.test(line));
  }

  #record(args: readonly unknown[]): void {
    this.lines.push(args.map((arg) => (arg instanceof Error ? arg.stack : String(arg))).join(' '));
  }
}
