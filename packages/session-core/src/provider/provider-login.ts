import { PROVIDER_ATTRIBUTE } from '../session/attribute-names.js';
import type { SessionIndex } from '../session/session-indexes.js';
import { hashOf } from '../session/session-token.js';

/** What a session keeps of a login at an identity provider. `iat` in seconds since the epoch. */
export interface ProviderLogin {
  readonly iss: string;
  readonly sub: string;
  readonly sid?: string;
  readonly iat: number;
}

export const SID_INDEX = 'nest-session.provider-sid';
export const SUB_INDEX = 'nest-session.provider-sub';

/** They list a session by its provider and what that calls the session, or the user: equal names may mean others. */
export const PROVIDER_INDEXES: Readonly<Record<string, SessionIndex>> = {
  [SID_INDEX]: (session) => {
    const { iss, sid } = providerLoginIn(session.getAttribute(PROVIDER_ATTRIBUTE)) ?? {};
    return sid === undefined ? undefined : providerHash(iss!, sid);
  },
  [SUB_INDEX]: (session) => {
    const login = providerLoginIn(session.getAttribute(PROVIDER_ATTRIBUTE));
    return login && providerHash(login.iss, login.sub);
  },
};

/** One hash for a list of names: what the store has tells nothing of them, and is short. */
export function providerHash(...names: readonly string[]): string {
  return hashOf(JSON.stringify(names));
}

export function providerLoginIn(value: unknown): ProviderLogin | undefined {
  const login = value as ProviderLogin | undefined;
  return typeof login?.iss === 'string' && typeof login.sub === 'string' ? login : undefined;
}
