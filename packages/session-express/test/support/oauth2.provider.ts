import { createHash, randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A provider of OAuth 2.0 on this machine, which lets everybody in at once as `ann`. */
export class OAuth2Provider {
  /** The codes that were not used yet, each with the challenge (PKCE) of who asked for it, if there was one. */
  readonly #challenges = new Map<string, string | null>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      const url = new URL(request.url ?? '/', this.origin);
      if (url.pathname === '/authorize') {
        const back = new URL(url.searchParams.get('redirect_uri') ?? '');
        const code = randomUUID();
        this.#challenges.set(code, url.searchParams.get('code_challenge'));
        back.searchParams.set('code', code);
        const state = url.searchParams.get('state');
        if (state !== null) back.searchParams.set('state', state);
        response.writeHead(302, { location: back.href }).end();
        return;
      }
      if (url.pathname === '/user') {
        const isAnn = request.headers.authorization === 'Bearer of-ann';
        response.writeHead(isAnn ? 200 : 401, { 'content-type': 'application/json' });
        response.end(JSON.stringify(isAnn ? { id: 'ann' } : {}));
        return;
      }
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        const isGranted = this.#redeem(new URLSearchParams(body));
        response.writeHead(isGranted ? 200 : 400, { 'content-type': 'application/json' });
        response.end(
          JSON.stringify(isGranted ? { access_token: 'of-ann', token_type: 'bearer' } : { error: 'invalid_grant' }),
        );
      });
    });
  }

  static async start(): Promise<OAuth2Provider> {
    const provider = new OAuth2Provider();
    await new Promise<void>((resolve) => provider.#server.listen(0, '127.0.0.1', resolve));
    return provider;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** What the browser does at the provider: the address that it is sent back to. */
  async visit(location: string): Promise<string> {
    const response = await fetch(location, { redirect: 'manual', headers: { connection: 'close' } });
    return (
      new URL(response.headers.get('location') ?? '').pathname + new URL(response.headers.get('location') ?? '').search
    );
  }

  async stop(): Promise<void> {
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Whether the code is known, unused, and asked for by who sends the verifier of its challenge. */
  #redeem(fields: URLSearchParams): boolean {
    const code = fields.get('code') ?? '';
    const challenge = this.#challenges.get(code);
    this.#challenges.delete(code);
    const verifier = fields.get('code_verifier') ?? '';
    return challenge === null || challenge === createHash('sha256').update(verifier).digest('base64url');
  }
}
