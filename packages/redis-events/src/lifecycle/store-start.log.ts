import type { RedisConnections } from '../connection/redis-connections.js';
import { shownKind, shownServer } from '../connection/shown-server.js';
import type { BackgroundService } from '../timing/background-service.js';
import { settledWithin } from '../timing/settled-within.js';

// Milliseconds that the line waits for what it says. The application does not wait for the line.
const PATIENCE = 2000;

/** Says in one line of the log what a module keeps where, as soon as Redis has told its version. */
export abstract class StoreStartLog implements BackgroundService {
  readonly #hurry = new AbortController();
  #told: Promise<void> | undefined;
  #server: string | undefined;

  constructor(private readonly connections: RedisConnections) {}

  start(): void {
    this.#told ??= this.#tell();
  }

  /** A line that still waits says what is known. */
  async stop(): Promise<void> {
    this.#hurry.abort();
    await this.#told;
  }

  /** Says it. `server`: which Redis that is. */
  protected abstract tell(server: string): void;

  /** What the line waits for besides. */
  protected async ask(): Promise<void> {
    // Nothing.
  }

  async #tell(): Promise<void> {
    const { background } = this.connections;
    const { signal } = this.#hurry;
    const hurry = new Promise((resolve) => signal.addEventListener('abort', resolve));
    const server = shownServer(background).then((shown) => (this.#server = shown));
    const asked = Promise.all([server, this.ask()]);
    if (!signal.aborted) await settledWithin(PATIENCE, Promise.race([hurry, asked]));
    this.tell(`${this.#server ?? 'Redis of unknown version'}, ${shownKind(background)}`);
  }
}
