/** Who signs in on both sides. No visitor of the page has this account. */
export const ACCOUNT = 'carol';

/** Whose cookie is stolen on both sides. */
export const ROBBED = 'dora';

/** The path of the WebSockets of both sides. */
export const SOCKET = '/compared/socket';

/** Until a session ends whose end is compared, or an order is due. */
export const SECONDS_LEFT = 3;

/** Until the instance that took the order is killed. */
export const MILLISECONDS_TO_LIVE = 1000;

/** What `GET /compared/account` of each side returns. */
export interface AccountView {
  readonly id: string;
  /** The name of the account, or null for a visitor. */
  readonly name: string | null;
  readonly items: readonly string[];
}

/** What happened when a session had ended, or an order was due. */
export interface EndEntry {
  readonly type: 'killed' | 'mail';
  /** Epoch milliseconds. */
  readonly at: number;
  readonly instance: string;
  readonly items: readonly string[];
}
