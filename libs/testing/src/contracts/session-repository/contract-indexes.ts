import { SessionIndexes } from '@nest-session/core/internal';

/** The value of the attribute `account`. */
export interface Account {
  readonly tenant?: string;
  readonly provider?: { readonly sid: string };
}

/** The indexes of the stores under test: two of one attribute, and some whose names only escaping keeps apart. */
export const CONTRACT_INDEXES = new SessionIndexes({
  tenant: (session) => session.getAttribute<Account>('account')?.tenant,
  sid: (session) => session.getAttribute<Account>('account')?.provider?.sid,
  x: (session) => session.getAttribute<string>('x'),
  'x:y': (session) => session.getAttribute<string>('x:y'),
  'x%3Ay': (session) => session.getAttribute<string>('x%3Ay'),
});
