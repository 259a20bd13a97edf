import { Redis } from 'ioredis';
import { commandStats } from './command.stats.js';
import { documentedLines, type RightsName } from './documented.rights.js';
import { monitorOf } from './monitor-of.js';

/** Commands that need no right. */
const ALWAYS = ['auth', 'client|setinfo', 'hello', 'quit'];
const WITH_SUBCOMMANDS = /^(client|xgroup|xinfo)$/i;
/** Redis shows them to no MONITOR. */
const HIDDEN = ['config|get', 'config|set'];

/** The user `app` of a server, with rights of the documentation: what it sends, and what Redis denies it. */
export class WatchedRights {
  /** The commands that others than the test send, those that scripts call not included: `hset`, `xgroup|create`. */
  readonly sent = new Set<string>();

  private constructor(
    private readonly admin: Redis,
    private readonly monitor: Redis,
  ) {}

  /** `admin`: the connection of the test. */
  static async watch(admin: Redis, url: string): Promise<WatchedRights> {
    const own = /\baddr=(\S+)/.exec(String(await admin.client('INFO')))?.[1];
    const rights = new WatchedRights(admin, await monitorOf(new Redis(url, { lazyConnect: true })));
    rights.monitor.on('monitor', (_time: string, [name = '', sub = '']: string[], source: string) => {
      if (source === own || source === 'lua') return;
      rights.sent.add((WITH_SUBCOMMANDS.test(name) ? `${name}|${sub}` : name).toLowerCase());
    });
    return rights;
  }

  stop(): void {
    this.monitor.disconnect();
  }

  /** Makes the user anew, with these rights of the documentation but not with those in `without`. */
  async grant(names: readonly RightsName[], without: readonly string[] = []): Promise<void> {
    for (const line of documentedLines(names)) await this.admin.acl('SETUSER', 'app', ...line);
    await this.admin.acl('SETUSER', 'app', ...without.map((command) => `-${command}`));
    await this.admin.acl('LOG', 'RESET');
    await this.forgetCalls();
  }

  /** From now on it counts which scripts run, and which commands of those that Redis hides. */
  async forgetCalls(): Promise<void> {
    await this.admin.script('FLUSH');
    // Afterwards: Valkey 9.1 counts a CONFIG GET that its SCRIPT FLUSH calls.
    await this.admin.config('RESETSTAT');
  }

  /** Redis 7.2 and later also deny the name of ioredis, which works without the right to tell it. */
  async denied(): Promise<string[]> {
    const entries = (await this.admin.acl('LOG')) as string[][];
    const objects = entries.map((entry) => entry[entry.indexOf('object') + 1]!);
    return objects.filter((object) => object !== 'client|setinfo');
  }

  /** The commands that needed a right. */
  async commandsSent(): Promise<string[]> {
    const stats = await commandStats(this.admin);
    const hidden = HIDDEN.filter((name) => stats.has(name));
    return [...this.sent, ...hidden].filter((name) => !ALWAYS.includes(name));
  }
}
