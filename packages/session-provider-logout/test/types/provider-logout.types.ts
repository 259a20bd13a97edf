import type { Session } from '@nest-session/core';
import {
  OnProviderEvent,
  type ProviderEvent,
  ProviderLogoutModule,
  ProviderSessionEndedError,
} from '@nest-session/provider-logout';

/** As openid-client has it. */
interface IdToken {
  readonly iss: string;
  readonly sub: string;
  readonly iat: number;
  readonly aud: string | string[];
  readonly [claim: string]: unknown;
}

export function signIn(session: Session, claims: IdToken): void {
  session.signIn('ann', { provider: claims });
  session.signIn('ann', { provider: { iss: 'https://login.example.com', sub: 'ann' } });
  // @ts-expect-error who it is must be known
  session.signIn('ann', { provider: { iss: 'https://login.example.com' } });
}

ProviderLogoutModule.forRoot({ issuers: [{ issuer: 'https://login.example.com', audience: 'shop' }] });
ProviderLogoutModule.forRoot({ issuers: async (issuer) => ({ issuer, audience: ['shop'] }) });
ProviderLogoutModule.forRootAsync({ useFactory: () => ({ issuers: [] }) });
// @ts-expect-error a token that everybody could sign
ProviderLogoutModule.forRoot({ issuers: [{ issuer: 'x', audience: 'shop', algorithms: ['HS256'] }] });
// @ts-expect-error without issuers
ProviderLogoutModule.forRoot({});

export class Handlers {
  @OnProviderEvent('back-channel', 'session-revoked')
  known(event: ProviderEvent): number {
    return event.sessions.length;
  }

  @OnProviderEvent('https://example.com/own-event')
  own({ content }: ProviderEvent): unknown {
    return content['reason_user'];
  }

  @OnProviderEvent()
  all(): void {
    throw new ProviderSessionEndedError();
  }

  // @ts-expect-error an event is no text
  @OnProviderEvent()
  wrong(text: string): string {
    return text;
  }
}
