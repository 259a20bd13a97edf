/** A user of the realm, whose password is `engine`. */
export interface KeycloakUser {
  readonly id: string;
  readonly username: string;
}

type Representation = Record<string, unknown>;

/** The realm `shop` of the Keycloak that `npm run test:keycloak` has started, as its administrator sees it. */
export class Keycloak {
  readonly origin = process.env['KEYCLOAK']!;
  readonly issuer = `${this.origin}/realms/shop`;

  /** Lets the client log in, and log out, at this address. */
  async serve(shop: string, logoutPath: string, settings: Representation = {}): Promise<void> {
    const attributes = {
      'backchannel.logout.url': `${shop}${logoutPath}`,
      'backchannel.logout.session.required': 'true',
      'post.logout.redirect.uris': shop,
    };
    const [client] = await this.request<Representation[]>('GET', '/clients?clientId=shop');
    const changed = { ...client, redirectUris: [`${shop}/callback`], frontchannelLogout: false, ...settings };
    const all = { ...(client!['attributes'] as object), ...attributes, ...(settings['attributes'] as object) };
    await this.request('PUT', `/clients/${String(client!['id'])}`, { ...changed, attributes: all });
  }

  async newUser(username: string): Promise<KeycloakUser> {
    const profile = { email: `${username}@example.com`, firstName: username, lastName: 'Test' };
    const credentials = [{ type: 'password', value: 'engine' }];
    await this.request('POST', '/users', { username, enabled: true, ...profile, credentials });
    const [user] = await this.request<KeycloakUser[]>('GET', `/users?exact=true&username=${username}`);
    return user!;
  }

  /** The ids of the sessions of a user, the oldest first. */
  async sessionsOf({ id }: KeycloakUser): Promise<string[]> {
    const sessions = await this.request<{ id: string; start: number }[]>('GET', `/users/${id}/sessions`);
    return sessions.toSorted((a, b) => a.start - b.start).map((session) => session.id);
  }

  /** Calls the API for administrators. @throws Error with the status and the text of a failure */
  async request<T = void>(method: string, path: string, body?: unknown): Promise<T> {
    const token = await this.#token();
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' };
    const options = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const response = await fetch(`${this.origin}/admin/realms/shop${path}`, options);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  async #token(): Promise<string> {
    const grant = { grant_type: 'password', client_id: 'admin-cli', username: 'admin', password: 'admin' };
    const response = await fetch(`${this.origin}/realms/master/protocol/openid-connect/token`, {
      method: 'POST',
      headers: { connection: 'close' },
      body: new URLSearchParams(grant),
    });
    return ((await response.json()) as { access_token: string }).access_token;
  }
}
