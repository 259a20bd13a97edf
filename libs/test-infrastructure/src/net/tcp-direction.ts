import type { Socket } from 'node:net';

/** The rules for the data of one direction. */
export interface DirectionRules {
  /** Milliseconds by which data that arrive now are delayed. */
  delay(): number;
  /** Whether the data are held at the moment. */
  isHeld(): boolean;
  /** Sees data when they arrive. */
  arrived(data: Buffer): void;
  /** Sees data when they are passed on. */
  passed(): void;
}

type Item =
  | { readonly kind: 'data'; readonly due: number; readonly data: Buffer }
  | { readonly kind: 'end'; readonly due: number }
  | { readonly kind: 'destroy'; readonly due: number };

/** One direction of a connection: passes what it reads, and the end, to the other side in order, as the rules allow. */
export class TcpDirection {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #rules: DirectionRules;
  #items: Item[] = [];
  #timer: NodeJS.Timeout | undefined;
  #swallows = false;

  constructor(from: Socket, to: Socket, rules: DirectionRules) {
    this.#from = from;
    this.#to = to;
    this.#rules = rules;
    from.on('data', (data: Buffer) => {
      this.#rules.arrived(data);
      this.#add({ kind: 'data', data, due: Date.now() + this.#rules.delay() });
    });
    from.on('end', () => this.#add({ kind: 'end', due: Date.now() + this.#rules.delay() }));
    from.on('close', () => {
      // Closed without an end: the connection broke. Data that were sent before are passed first.
      if (!from.readableEnded) this.#add({ kind: 'destroy', due: Date.now() + this.#rules.delay() });
    });
    to.on('drain', () => from.resume());
    to.on('close', () => from.resume());
  }

  get heldBytes(): number {
    return this.#items.reduce((bytes, item) => bytes + (item.kind === 'data' ? item.data.length : 0), 0);
  }

  /** Everything that comes from now on is lost, the end included. */
  swallow(): void {
    this.#swallows = true;
    this.#items = [];
    clearTimeout(this.#timer);
  }

  /** Passes on what the rules allow by now. */
  flush(): void {
    clearTimeout(this.#timer);
    for (let item = this.#items[0]; item && !this.#rules.isHeld(); item = this.#items[0]) {
      const wait = item.due - Date.now();
      if (wait > 0) {
        this.#timer = setTimeout(() => this.flush(), wait);
        return;
      }
      this.#items.shift();
      this.#pass(item);
    }
  }

  #add(item: Item): void {
    if (this.#swallows) return;
    this.#items.push(item);
    this.flush();
  }

  #pass(item: Item): void {
    if (item.kind === 'destroy') this.#to.destroy();
    else if (!this.#to.writable) return;
    else if (item.kind === 'end') this.#to.end();
    else {
      this.#rules.passed();
      if (!this.#to.write(item.data)) this.#from.pause();
    }
  }
}
