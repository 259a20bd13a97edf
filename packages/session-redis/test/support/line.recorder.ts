import { Logger, type LoggerService } from '@nestjs/common';

/** Records every log line of any level, with its other arguments. */
export class LineRecorder implements LoggerService {
  readonly lines: string[] = [];
  readonly log = (...args: unknown[]) => this.#record(args);
  readonly warn = this.log;
  readonly error = this.log;
  readonly debug = this.log;
  readonly verbose = this.log;

  /** Installs it as the logger of the process. */
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
