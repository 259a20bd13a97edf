import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  base64url,
  CompactSign,
  exportJWK,
  generateKeyPair,
  type JWSHeaderParameters,
  type CompactJWSHeaderParameters,
} from 'jose';

export const BACK_CHANNEL = 'http://schemas.openid.net/event/backchannel-logout';
export const CAEP = 'https://schemas.openid.net/secevent/caep/event-type/';
export const RISC = 'https://schemas.openid.net/secevent/risc/event-type/';
export const SSF = 'https://schemas.openid.net/secevent/ssf/event-type/';

export type Claims = Readonly<Record<string, unknown>>;

export interface SigningKey {
  readonly kid: string | undefined;
  readonly alg: string;
  readonly privateKey: Awaited<ReturnType<typeof generateKeyPair>>['privateKey'];
  readonly jwk: object;
}

/** Answers a request for the keys, or for the discovery document. */
type Responder = (request: IncomingMessage, response: ServerResponse) => void;

export async function newKey(alg = 'RS256', kid: string | undefined = randomUUID()): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), use: 'sig', ...(kid !== undefined && { kid }) };
  return { kid, alg, privateKey, jwk };
}

export function nowInSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** An identity provider on loopback: it serves its discovery document and its keys, and signs what a test wants. */
export class IdentityProvider {
  readonly #server: Server;
  keys: SigningKey[];
  /** How often its keys were read. */
  reads = 0;
  /** How it answers, instead of with its keys or its document. */
  readonly instead: { keys?: Responder; document?: Responder } = {};
  document: object | undefined;

  private constructor(server: Server, key: SigningKey) {
    this.#server = server;
    this.keys = [key];
  }

  static async start(alg = 'RS256'): Promise<IdentityProvider> {
    const key = await newKey(alg);
    const server = createServer((request, response) => provider.#serve(request, response));
    const provider = new IdentityProvider(server, key);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return provider;
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get key(): SigningKey {
    return this.keys[0]!;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    // Nobody should have to wait for connections that are kept.
    response.setHeader('Connection', 'close');
    if (request.url === '/keys') {
      this.reads++;
      if (this.instead.keys) return this.instead.keys(request, response);
      return void response.end(JSON.stringify({ keys: this.keys.map(({ jwk }) => jwk) }));
    }
    if (this.instead.document) return this.instead.document(request, response);
    const { issuer } = this;
    response.end(JSON.stringify(this.document ?? { issuer, jwks_uri: `${issuer}/keys` }));
  }

  /** Claims of `undefined` are left out. */
  logoutClaims(claims: Claims = {}): Claims {
    const iat = nowInSeconds();
    const events = { [BACK_CHANNEL]: {} };
    return { iss: this.issuer, aud: 'shop', iat, exp: iat + 120, jti: randomUUID(), events, ...claims };
  }

  logoutToken(claims: Claims = {}, header: object = {}, key = this.key): Promise<string> {
    return sign(this.logoutClaims(claims), { typ: 'logout+jwt', ...header }, key);
  }

  /** A token with one event, about a user of this provider unless `claims` say otherwise. */
  eventToken(uri: string, content: object = {}, claims: Claims = {}, header: object = {}): Promise<string> {
    const sub_id = { format: 'iss_sub', iss: this.issuer, sub: 'ann' };
    const base = { iss: this.issuer, aud: 'shop', iat: nowInSeconds(), jti: randomUUID(), sub_id };
    return sign({ ...base, events: { [uri]: content }, ...claims }, { typ: 'secevent+jwt', ...header }, this.key);
  }
}

/** Signs anything, also what no library would. A header of `undefined` is left out. */
export async function sign(payload: unknown, header: object, { alg, kid, privateKey }: SigningKey): Promise<string> {
  const whole = JSON.parse(JSON.stringify({ alg, kid, ...header })) as CompactJWSHeaderParameters;
  return new CompactSign(Buffer.from(JSON.stringify(payload))).setProtectedHeader(whole).sign(privateKey);
}

/** A token whose parts are as given, with a signature of a test. */
export function assembled(
  header: JWSHeaderParameters | object,
  payload: unknown,
  signature: (signed: string) => Uint8Array | string = () => '',
): string {
  const signed = [header, payload].map((part) => base64url.encode(JSON.stringify(part))).join('.');
  return `${signed}.${base64url.encode(signature(signed))}`;
}
