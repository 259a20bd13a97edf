import type { ProviderAction, ProviderSubject } from '../configuration/provider-logout.options.js';

/** The name of a logout token, and of the events that the library knows. Others are named by their URI. */
export type ProviderEventName =
  | 'back-channel'
  | 'session-revoked'
  | 'sessions-revoked'
  | 'credential-change'
  | 'token-claims-change'
  | 'assurance-level-change'
  | 'device-compliance-change'
  | 'risk-level-change'
  | 'session-established'
  | 'session-presented'
  | 'account-disabled'
  | 'account-enabled'
  | 'account-purged'
  | 'account-credential-change-required'
  | 'credential-compromise'
  | 'identifier-changed'
  | 'identifier-recycled'
  | 'verification'
  | 'stream-updated';

/** What an identity provider has told, after it was verified, and what it did. */
export interface ProviderEvent {
  /** `back-channel` for a logout token; else the last part of the URI of an event of CAEP, RISC or SSF, or the URI. */
  readonly name: ProviderEventName | (string & {});
  /** The provider that has sent it. */
  readonly issuer: string;
  /** The id of its token. */
  readonly jti: string;
  /** When it happened, as the provider says, in epoch milliseconds. */
  readonly at: number;
  /** Whom it is about: of a logout token `{ format: 'iss_sub', iss, sub, sid }`. */
  readonly subject: ProviderSubject;
  /** What the provider says besides, such as `reason_user`, or `revoke_offline_access` of Keycloak. */
  readonly content: Readonly<Record<string, unknown>>;
  /** What was done to `sessions`. */
  readonly action: ProviderAction;
  /** The sessions that have ended, or must be signed in to again. */
  readonly sessions: readonly ProviderEventSession[];
}

/** A session that an event has named. */
export interface ProviderEventSession {
  /** Its id. */
  readonly id: string;
  /** The name of its user; undefined if it has none. */
  readonly principalName: string | undefined;
}
