/** A user of the realm, whose password is `engine`. */
export interface KeycloakUser {
  readonly id: string;
  readonly username: string;
}

const STREAMS = '/realms/shop/ssf/transmitter';
const CAEP = 'https://schemas.openid.net/secevent/caep/event-type/';

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

  /** Lets the realm push its events about all users to this address, and asks it to verify that it can. */
  async pushEvents(endpoint: string, state: string): Promise<void> {
    const scopes = ['ssf.manage', 'ssf.read'];
    const [client] = await this.request<Representation[]>('GET', '/clients?clientId=shop');
    const path = `/clients/${String(client!['id'])}`;
    const settings = {
      'ssf.enabled': 'true',
      'ssf.defaultSubjects': 'ALL',
      'ssf.streamAudience': 'shop',
      'ssf.validPushUrls': endpoint,
    };
    await this.request('PUT', path, { ...client, attributes: { ...(client!['attributes'] as object), ...settings } });
    const all = await this.request<{ id: string; name: string }[]>('GET', '/client-scopes');
    for (const { id } of all.filter(({ name }) => scopes.includes(name)))
      await this.request('PUT', `${path}/optional-client-scopes/${id}`);
    const credentials = { client_id: 'shop', client_secret: String(client!['secret']) };
    const grant = { grant_type: 'client_credentials', ...credentials, scope: scopes.join(' ') };
    const token = await this.#token('shop', grant);
    const { stream_id } = await this.#send<{ stream_id: string }>(token, 'POST', `${STREAMS}/streams`, {
      delivery: { method: 'urn:ietf:rfc:8935', endpoint_url: endpoint },
      events_requested: ['session-revoked', 'credential-change'].map((name) => `${CAEP}${name}`),
    });
    await this.#send(token, 'POST', `${STREAMS}/verify`, { stream_id, state });
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
    const grant = { grant_type: 'password', client_id: 'admin-cli', username: 'admin', password: 'admin' };
    return this.#send(await this.#token('master', grant), method, `/admin/realms/shop${path}`, body);
  }

  async #token(realm: string, grant: Record<string, string>): Promise<string> {
    const response = await fetch(`${this.origin}/realms/${realm}/protocol/openid-connect/token`, {
      method: 'POST',
      headers: { connection: 'close' },
      body: new URLSearchParams(grant),
    });
    return ((await response.json()) as { access_token: string }).access_token;
  }

  async #send<T>(token: string, method: string, path: string, body?: unknown): Promise<T> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' };
    const options = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const response = await fetch(`${this.origin}${path}`, options);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }
}
