import { SPRING_PRINCIPAL_NAME } from '../values/principal-attribute.js';

/** What a key of Spring is. */
export type SpringKey =
  | { readonly kind: 'session'; readonly id: string }
  | { readonly kind: 'shadow' }
  /** `minute`: epoch milliseconds at which its sessions end. */
  | { readonly kind: 'bucket'; readonly minute: number }
  | { readonly kind: 'expirations' }
  | { readonly kind: 'index'; readonly isOfPrincipals: boolean };

const PRINCIPALS = `index:${SPRING_PRINCIPAL_NAME}:`;

/** The names of the keys of Spring Session in a namespace. */
export class SpringKeys {
  readonly prefix: string;
  /** The sorted set that tells when sessions end, where there are no buckets. */
  readonly expirations: string;

  constructor(readonly namespace: string) {
    this.prefix = `${namespace}:`;
    this.expirations = `${this.prefix}sessions:expirations`;
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
    if (!key.startsWith(this.prefix)) return undefined;
    const name = key.slice(this.prefix.length);
    if (key === this.expirations) return { kind: 'expirations' };
    if (name.startsWith('sessions:expires:')) return { kind: 'shadow' };
    if (name.startsWith('index:')) return { kind: 'index', isOfPrincipals: name.startsWith(PRINCIPALS) };
    const [, id, minute] = /^(?:sessions:([^:]+)|expirations:(\d{1,16}))$/.exec(name) ?? [];
    if (id !== undefined) return { kind: 'session', id };
    return minute === undefined ? undefined : { kind: 'bucket', minute: Number(minute) };
  }
}
