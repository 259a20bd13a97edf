import type { Session } from '@nest-session/core';
import { valueOfText } from '../values/remembered-texts.js';
import { SECURITY_CONTEXT, type SpringAuthentication } from '../values/security.context.js';

/**
 * Signs a user in to NestJS and to Spring Security, as `session.signIn()` does: `mode: 'shared'` with a Spring
 * application that keeps its sessions by SecurityJacksonModules. Spring finds a `User` without password, with these
 * authorities.
 * @throws SessionAttributeError when Spring is not known to keep its sessions so
 */
export function signInAs(
  session: Session,
  user: SpringAuthentication,
  options?: Parameters<Session['signIn']>[1],
): void {
  session.signIn(user.name, options);
  session.setAttribute(SECURITY_CONTEXT, valueOfText(JSON.stringify(contextOf(user))));
}

function contextOf({ name, authorities }: SpringAuthentication): object {
  const granted = authorities.map((authority) => ({
    '@class': `${SECURITY}.core.authority.SimpleGrantedAuthority`,
    authority,
  }));
  return {
    '@class': `${SECURITY}.core.context.SecurityContextImpl`,
    authentication: {
      '@class': `${SECURITY}.authentication.UsernamePasswordAuthenticationToken`,
      authenticated: true,
      authorities: ['java.util.Collections$UnmodifiableRandomAccessList', granted],
      credentials: null,
      details: null,
      principal: {
        '@class': `${SECURITY}.core.userdetails.User`,
        accountNonExpired: true,
        accountNonLocked: true,
        authorities: ['java.util.Collections$UnmodifiableSet', granted],
        credentialsNonExpired: true,
        enabled: true,
        password: null,
        username: name,
      },
    },
  };
}

const SECURITY = 'org.springframework.security';
