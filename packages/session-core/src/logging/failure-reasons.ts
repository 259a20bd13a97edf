// A network that flaps may alternate between several reasons.
const MOST = 10;

// A message may go on with what differs from call to call, such as the hash of a script.
const KIND_LENGTH = 40;

/** The reasons of a failure that lasts. Each is new once, until the failure ends, and so are ten at most. */
export class FailureReasons {
  readonly #kinds = new Set<string>();

  get isKnown(): boolean {
    return this.#kinds.size > 0;
  }

  add(error: unknown): boolean {
    const kind = kindOf(error);
    if (this.#kinds.has(kind) || this.#kinds.size >= MOST) return false;
    this.#kinds.add(kind);
    return true;
  }

  clear(): void {
    this.#kinds.clear();
  }
}

/** The code of Node.js, such as `ECONNREFUSED`, or else how the message begins, without addresses and times. */
function kindOf(error: unknown): string {
  const { code, message = String(error) } = Object(error) as { readonly code?: unknown; readonly message?: string };
  return typeof code === 'string' ? code : message.replaceAll(/\d/g, '').slice(0, KIND_LENGTH);
}
