import { Instance } from './instance.js';

/** How many calls an instance has at once. */
const CLIENTS = 2;

/** Instances of an application that are under load, and that are replaced meanwhile. */
export class Fleet {
  /** Each with the end of its load. */
  readonly #loads = new Map<Instance, Promise<unknown>>();
  #isLoaded = true;

  constructor(
    private readonly environment: Record<string, string>,
    private readonly performBatch: (instance: Instance) => Promise<void>,
  ) {}

  get instances(): Instance[] {
    return [...this.#loads.keys()];
  }

  async add(program: string): Promise<void> {
    const instance = await Instance.start(program, this.environment);
    this.#loads.set(instance, Promise.resolve());
    this.#loads.set(instance, Promise.all(Array.from({ length: CLIENTS }, () => this.#load(instance))));
  }

  /** The oldest one is deployed no longer: it finishes what it does; or it is killed. */
  async remove(how: 'finished' | 'killed'): Promise<void> {
    const [[instance, load]] = this.#loads as unknown as [[Instance, Promise<unknown>]];
    this.#loads.delete(instance);
    if (how === 'finished') await load;
    await instance.stop(how === 'finished' ? 'SIGTERM' : 'SIGKILL');
    await load;
  }

  /** Resolves when no call is under way any more. */
  async rest(): Promise<void> {
    this.#isLoaded = false;
    await Promise.all(this.#loads.values());
  }

  async #load(instance: Instance): Promise<void> {
    while (this.#isLoaded && this.#loads.has(instance)) await this.performBatch(instance);
  }
}
