import { generateKeyPairSync, sign } from 'node:crypto';
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { Cookie } from 'tough-cookie';

interface Response {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Sends a POST request without a body, with the cookies of the client. */
type Post = (path: string, headers: OutgoingHttpHeaders) => Promise<Response>;

/** What a server told the client at its registration. */
interface Registration {
  readonly session_identifier: string;
  readonly refresh_url: string;
  readonly credentials: readonly [{ readonly name: string }];
}

/** As often as Chromium signs for one request. */
const MOST_PROOFS = 5;

/** The key to which a server binds the session of a client, as Chromium keeps one: it never leaves the client. */
export class DeviceKey {
  readonly #pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  #registration: Registration | undefined;
  #challenge: string | undefined;
  /** Until when the bound cookie lives, in epoch milliseconds. */
  #provenUntil = 0;

  constructor(private readonly post: Post) {}

  /** Before a request: renews the proof of a bound session when it is over. */
  async prove(now: number): Promise<void> {
    for (let proofs = 0; this.#registration && now >= this.#provenUntil && proofs < MOST_PROOFS; proofs++) {
      const { session_identifier: id, refresh_url: path } = this.#registration;
      const proof = this.#challenge === undefined ? {} : { 'secure-session-response': this.#sign(this.#challenge) };
      const response = await this.post(path, { 'sec-secure-session-id': id, ...proof });
      const { status, headers, text } = response;
      // The server is in trouble: the request leaves without a proof, and the next one tries again.
      if (status >= 500) return;
      const challenge = /^"([^"]+)"/.exec(String(headers['secure-session-challenge']))?.[1];
      const isOver = status === 200 ? /"continue":\s*false/.test(text) : status !== 403 || challenge === undefined;
      if (isOver) this.#registration = undefined;
      this.#challenge = challenge;
      this.#takeProof(response, now);
    }
  }

  /** After a response: registers when it says so. */
  async takeOffer(headers: IncomingHttpHeaders, now: number): Promise<void> {
    const offer = /;path="([^"]+)";challenge="([^"]+)"/.exec(String(headers['secure-session-registration']));
    if (!offer) return;
    const [, path, challenge] = offer as unknown as [string, string, string];
    const response = await this.post(path, { 'secure-session-response': this.#sign(challenge, true) });
    if (response.status !== 200) return;
    this.#registration = JSON.parse(response.text) as Registration;
    this.#challenge = undefined;
    this.#takeProof(response, now);
  }

  #takeProof({ headers }: Response, now: number): void {
    const cookies = (headers['set-cookie'] ?? []).map((each) => Cookie.parse(each));
    const bound = cookies.find((each) => each?.key === this.#registration?.credentials[0].name);
    if (bound) this.#provenUntil = now + Number(bound.maxAge) * 1000;
  }

  #sign(challenge: string, withKey = false): string {
    const jwk = withKey ? { jwk: this.#pair.publicKey.export({ format: 'jwk' }) } : {};
    const parts = [{ alg: 'ES256', typ: 'dbsc+jwt', ...jwk }, { jti: challenge }];
    const signed = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
    const key = { key: this.#pair.privateKey, dsaEncoding: 'ieee-p1363' } as const;
    return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`;
  }
}
