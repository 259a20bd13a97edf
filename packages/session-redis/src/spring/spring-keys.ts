/** What a key of Spring is. */
export type SpringKey =
  | { readonly kind: 'session'; readonly id: string }
  | { readonly kind: 'shadow' }
  /** `minute`: epoch milliseconds at which its sessions end. */
  | { readonly kind: 'bucket'; readonly minute: number }
  | { readonly kind: 'expirations' }
  | { readonly kind: 'index'; readonly isOfPrincipals: boolean };

/** Spring's name of the index of principals, and of the attribute that an application sets for it without Spring Security. */
export const SPRING_PRINCIPAL_NAME =
  'org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME';

const PRINCIPALS = `index:${SPRING_PRINCIPAL_NAME}:`;

/** The names of the keys of Spring Session in a namespace. */
export class SpringKeys {
  readonly prefix: string;

  constructor(readonly namespace: string) {
    this.prefix = `${namespace}:`;
  }

  session(id: string): string {
    return `${this.prefix}sessions:${id}`;
  }

  shadow(id: string): string {
    return `${this.prefix}sessions:expires:${id}`;
  }

  /** Of the sessions of a user. */
  index(principal: string): string {
    return `${this.prefix}${PRINCIPALS}${principal}`;
  }

  /** Undefined for a key of somebody else. */
  read(key: string): SpringKey | undefined {
    const name = key.slice(this.prefix.length);
    if (name === 'sessions:expirations') return { kind: 'expirations' };
    if (name.startsWith('sessions:expires:')) return { kind: 'shadow' };
    if (name.startsWith('index:')) return { kind: 'index', isOfPrincipals: name.startsWith(PRINCIPALS) };
    const [, id, minute] = /^(?:sessions:([^:]+)|expirations:(\d{1,16}))$/.exec(name) ?? [];
    if (id !== undefined) return { kind: 'session', id };
    return minute === undefined ? undefined : { kind: 'bucket', minute: Number(minute) };
  }
}
