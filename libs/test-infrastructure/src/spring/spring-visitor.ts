import type { HttpAgent } from '@nest-session/testing';
import { requested } from './requested.js';
import type { JavaChange, JavaSession } from './java-session.js';

const FORM = { headers: { 'content-type': 'application/x-www-form-urlencoded' } };

/** A browser of an application of Spring, with its cookies. */
export class SpringVisitor {
  constructor(readonly agent: HttpAgent) {}

  /** Null without a session. */
  session(): Promise<JavaSession | null> {
    return requested(this.agent, 'GET', '/session');
  }

  /** Creates a session if there is none. */
  change(change: JavaChange): Promise<JavaSession> {
    return requested(this.agent, 'PATCH', '/session', change);
  }

  /** Sets attributes of many classes of Java, which each serializer can read again. */
  setKinds(): Promise<JavaSession> {
    return requested(this.agent, 'POST', '/session/kinds');
  }

  async invalidate(): Promise<void> {
    await requested(this.agent, 'DELETE', '/session');
  }

  /** By Spring Security: ann is ROLE_USER and ROLE_ADMIN, bob is ROLE_USER. The session id changes. */
  async signIn(name: string): Promise<void> {
    const body = new URLSearchParams({ username: name, password: 'secret' }).toString();
    const { status, text } = await this.agent.request('POST', '/login', { ...FORM, body });
    if (status !== 204) throw new Error(`POST /login: ${status} ${text}`);
  }

  /** By Spring Security, which invalidates the session. */
  async signOut(): Promise<void> {
    await requested(this.agent, 'POST', '/logout');
  }
}
