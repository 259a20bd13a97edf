import type { RedisSessionModuleOptions } from '@nest-session/redis/internal';
import type { CommandOutput, ExitCode } from './command-output.js';

export type { ExitCode };

interface CommandOption {
  /** What stands for its value in the help, such as `<number>`. Without it, the option has none. */
  readonly value?: string;
  readonly short?: string;
  readonly text: string;
  readonly required?: boolean;
}

export type CommandOptions = Readonly<Record<string, CommandOption>>;

/** A command of `nest-session`. To add one, add it to the list in commands.ts. */
export interface Command {
  readonly name: string;
  readonly text: string;
  /** The argument behind its name, such as `<id>`; `required`: unless another option takes its place. */
  readonly argument?: CommandOption;
  readonly options: CommandOptions;
  /** Its module, such as `list.command.ts`. What it needs takes longer to load than the help takes to print. */
  load(): Promise<{ run(call: CommandCall): Promise<ExitCode> }>;
}

export type StoreAddress = Pick<
  RedisSessionModuleOptions,
  'url' | 'cluster' | 'sentinels' | 'name' | 'username' | 'password' | 'tls' | 'namespace' | 'grace' | 'events'
>;

export interface CommandCall {
  readonly address: StoreAddress;
  readonly argument: string | undefined;
  /** Its own options that have a value. */
  readonly values: Readonly<Record<string, string | undefined>>;
  /** Its own options that have none, as far as they were given. */
  readonly flags: ReadonlySet<string>;
  readonly signal: AbortSignal;
  readonly output: CommandOutput;
}
