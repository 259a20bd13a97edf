import { createSign, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request as requestOverHttp } from 'node:http';
import { request as requestOverHttps } from 'node:https';
import { text } from 'node:stream/consumers';

interface Binding {
  readonly id: string;
  readonly refreshUrl: string;
  readonly cookie: string;
  readonly key: Key;
  challenge?: string | undefined;
}

interface Key {
  readonly privateKey: KeyObject;
  readonly jwk: object;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Makes a key as a browser does. */
export function newKey(): Key {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { privateKey, jwk: publicKey.export({ format: 'jwk' }) };
}

/** A signed proof; `jwk`: also the key, as at a registration. */
export function proofBy({ privateKey, jwk }: Key, challenge: string, withKey: boolean): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const head = encode({ alg: 'ES256', typ: 'dbsc+jwt', ...(withKey && { jwk }) });
  const signed = `${head}.${encode({ jti: challenge })}`;
  const signature = createSign('sha256').update(signed).sign({ key: privateKey, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}

/** What an answer tells its browser to register for; undefined when it tells nothing. */
export function offerIn({
  headers,
}: Pick<Answer, 'headers'>): { readonly path: string; readonly challenge: string } | undefined {
  const offer = /;path="([^"]+)";challenge="([^"]+)"/.exec(String(headers['secure-session-registration']));
  return offer ? { path: offer[1]!, challenge: offer[2]! } : undefined;
}

/** The challenge of an answer, and of which session; undefined without one. */
export function challengeIn({ headers }: Answer): { readonly challenge: string; readonly id: string } | undefined {
  const found = /^"([^"]+)";id="([^"]+)"$/.exec(String(headers['secure-session-challenge']));
  return found ? { challenge: found[1]!, id: found[2]! } : undefined;
}

/**
 * A browser that binds sessions as Chromium does: registers when told to, and renews its proof before a request that
 * would leave without it. It says that it came over https, as a proxy does.
 */
export class DeviceBrowser {
  readonly jar = new Map<string, string>();
  binding: Binding | undefined;
  /** What it did by itself: `register 200`, `refresh 403`, and so on. */
  readonly own: string[] = [];

  /** `canBind`: otherwise it ignores what it does not know, as browsers do. */
  constructor(
    readonly origin: string,
    private readonly canBind = true,
  ) {}

  get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.request('GET', path, headers);
  }

  post(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.request('POST', path, headers);
  }

  async request(method: string, path: string, headers: Record<string, string> = {}): Promise<Answer> {
    const isOwn = (headers['sec-fetch-site'] ?? 'same-origin') === 'same-origin';
    if (this.binding && isOwn && !this.jar.has(this.binding.cookie)) await this.refresh();
    const answer = await this.send(method, path, headers);
    await this.takeOffer(answer);
    return answer;
  }

  /** Registers if it is told to. */
  async takeOffer({ headers }: Answer): Promise<void> {
    const offer = offerIn({ headers });
    if (offer && this.canBind) await this.register(offer.path, offer.challenge);
  }

  async register(path: string, challenge: string, key = newKey()): Promise<Answer> {
    const answer = await this.send('POST', path, { 'secure-session-response': proofBy(key, challenge, true) });
    this.own.push(`register ${answer.status}`);
    if (answer.status !== 200) return answer;
    const {
      session_identifier: id,
      refresh_url: refreshUrl,
      credentials,
    } = JSON.parse(answer.body) as {
      session_identifier: string;
      refresh_url: string;
      credentials: [{ name: string }];
    };
    this.binding = { id, refreshUrl, cookie: credentials[0].name, key };
    this.#takeChallenge(answer);
    return answer;
  }

  /** Asks for a proof, and gives one, at most four times. */
  async refresh(): Promise<void> {
    for (let proofs = 0; this.binding && proofs <= 4; proofs++) {
      const { id, refreshUrl, key, challenge } = this.binding;
      const answer = await this.send('POST', refreshUrl, {
        'sec-secure-session-id': id,
        ...(challenge !== undefined && { 'secure-session-response': proofBy(key, challenge, false) }),
      });
      this.own.push(`refresh ${answer.status}`);
      if (answer.status === 503) return;
      const isOver = answer.status === 200 && answer.body.includes('"continue":false');
      if (isOver || ![200, 403].includes(answer.status)) return void (this.binding = undefined);
      const isAsked = this.#takeChallenge(answer);
      if (answer.status === 200) return;
      if (!isAsked) return void (this.binding = undefined);
    }
    this.binding = undefined;
  }

  /** Sends what a browser sends to renew a proof, with what it has signed, and takes note of nothing. */
  sendRefresh(headers: Record<string, string> = {}, method = 'POST'): Promise<Answer> {
    return this.send(method, this.binding!.refreshUrl, { 'sec-secure-session-id': this.binding!.id, ...headers });
  }

  /** The header of a proof. */
  proof(challenge = this.binding!.challenge!, key = this.binding!.key, withKey = false) {
    return { 'secure-session-response': proofBy(key, challenge, withKey) };
  }

  /** The same browser, which another instance serves from now on. */
  movedTo(origin: string): DeviceBrowser {
    const moved = new DeviceBrowser(origin);
    for (const [name, value] of this.jar) moved.jar.set(name, value);
    moved.binding = this.binding && { ...this.binding };
    return moved;
  }

  /** A copy of the cookies in a browser without the key. */
  thief(origin = this.origin, canBind = true): DeviceBrowser {
    const thief = new DeviceBrowser(origin, canBind);
    for (const [name, value] of this.jar) thief.jar.set(name, value);
    return thief;
  }

  send(method: string, path: string, headers: Record<string, string> = {}): Promise<Answer> {
    const { pathname, search } = new URL(path, this.origin);
    return this.sendTo(pathname + search, headers, method);
  }

  /** Sends what is to stand in the request line as it is. */
  async sendTo(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
    const cookie = [...this.jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const all = {
      ...(cookie && { cookie }),
      'x-forwarded-proto': 'https',
      'sec-fetch-site': 'same-origin',
      'sec-fetch-mode': 'cors',
      'sec-fetch-dest': 'empty',
      ...headers,
    };
    // Not by `fetch`, which sets some of these headers itself.
    const request = this.origin.startsWith('https:') ? requestOverHttps : requestOverHttp;
    // The certificates of the tests are self-signed.
    const options = { path, method, headers: all, agent: false, rejectUnauthorized: false } as const;
    const sent = request(this.origin, options).end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    for (const line of response.headers['set-cookie'] ?? []) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!;
      if (/max-age=0/i.test(line)) this.jar.delete(name!);
      else this.jar.set(name!, value!);
    }
    return { status: response.statusCode!, headers: response.headers, body: await text(response) };
  }

  #takeChallenge(answer: Answer): boolean {
    const found = challengeIn(answer);
    if (!this.binding || found?.id !== this.binding.id) return false;
    this.binding.challenge = found.challenge;
    return true;
  }
}
