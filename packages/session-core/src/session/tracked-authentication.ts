import type { KeptAttributes, UpdateSession, WriteReply } from './session-change.js';
import type { SessionSave } from './session-writer.js';
import type { TrackedAttributes } from './tracked-attributes.js';
import type { TrackedTimeouts } from './tracked-timeouts.js';

/** The part of an update that signs somebody in or out. */
export type AuthenticationChange = Pick<
  UpdateSession,
  'signIn' | 'signsOut' | 'maxInactiveInterval' | 'absoluteTimeout'
>;

/** What there was before a sign-in, or before the end of one. */
interface Before {
  readonly attributes: TrackedAttributes;
  readonly at: number | undefined;
}

/** A sign-in that is not saved yet, or the end of one. */
interface Pending extends Before {
  /** What a sign-in keeps; undefined: nobody is signed in any more. */
  readonly kept: KeptAttributes | undefined;
}

const NO_CHANGE: AuthenticationChange = {};

/** Since when somebody is signed in, which remembers whether a sign-in, or the end of one, must be written. */
export class TrackedAuthentication {
  /** Epoch milliseconds; undefined: nobody has signed in. */
  at: number | undefined;
  #pending: Pending | undefined;
  /** The one that the last save was made of. */
  #written: Pending | undefined;

  constructor(at: number | undefined) {
    this.at = at;
  }

  /** What a sign-in keeps that the store does not have yet; undefined: there is none. */
  get kept(): KeptAttributes | undefined {
    return this.#pending?.kept;
  }

  /** Somebody has signed in, and keeps these of the attributes. */
  signIn(attributes: TrackedAttributes, kept: KeptAttributes): void {
    this.#pending = { ...this.asStored(attributes), kept };
    this.at = Date.now();
  }

  /** Nobody is signed in any more. */
  signOut(attributes: TrackedAttributes): void {
    this.#pending = { ...this.asStored(attributes), kept: undefined };
    this.at = undefined;
  }

  /** What there was before the sign-in that is not saved, or the end of one: else these attributes, and what is. */
  asStored(attributes: TrackedAttributes): Before {
    const { attributes: before, at } = this.#pending ?? { attributes, at: this.at };
    return { attributes: before, at };
  }

  /** For the creation of a session. Whether it signs somebody in. */
  signsIn(): boolean {
    this.#written = this.#pending;
    return this.#pending?.kept !== undefined;
  }

  /** For an update. A sign-in sets both timeouts, whatever another request may have made of them. */
  change({ endNow, all }: TrackedTimeouts): AuthenticationChange {
    const pending = (this.#written = this.#pending);
    if (!pending) return NO_CHANGE;
    if (!pending.kept) return { signsOut: true };
    return endNow ? { signIn: pending.kept } : { signIn: pending.kept, ...all };
  }

  /** Records how the store answered a save. */
  settle(save: SessionSave, reply: WriteReply): void {
    // Somebody signed in or out during the save.
    if (this.#pending !== this.#written) return;
    this.#pending = undefined;
    if (save.kind === 'create' && save.signsIn && reply.outcome === 'created') this.at = reply.creationTime;
    if (reply.outcome === 'saved') this.at = reply.authenticatedAt ?? this.at;
  }
}
