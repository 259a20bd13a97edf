/** A place where calls wait until the test lets them go on. */
export class Gate {
  readonly #arrivals: (() => void)[] = [];
  readonly #opened: Promise<void>;
  #arrived = 0;
  #open!: () => void;
  #fail!: (error: unknown) => void;

  constructor() {
    this.#opened = new Promise((resolve, reject) => {
      this.#open = resolve;
      this.#fail = reject;
    });
    this.#opened.catch(() => undefined);
  }

  /** Waits at the gate: resolves when the test opens it, rejects when the test makes it fail. */
  pass(): Promise<void> {
    this.#arrived++;
    for (const arrival of this.#arrivals.splice(0)) arrival();
    return this.#opened;
  }

  /** Resolves when a call waits at the gate, or has passed it. */
  async reached(): Promise<void> {
    if (this.#arrived === 0) await new Promise<void>((resolve) => this.#arrivals.push(resolve));
  }

  /** Lets all calls pass, later ones too. */
  open(): void {
    this.#open();
  }

  /** Rejects all calls with `error`, later ones too. */
  fail(error: unknown): void {
    this.#fail(error);
  }
}
