import type { IncomingMessage } from 'node:http';
import { RefusedTokenError } from '../tokens/refused-token.error.js';

// Bytes: a token has one or two thousand.
const LARGEST = 64 * 1024;
// Milliseconds.
const PATIENCE = 5000;

/**
 * The body of a request, read before any parser of the application; or what an earlier one has made of it. A body that
 * is too large is read to its end, so that the connection can be used again. Resolves to undefined when the client has
 * left, or sends too slowly: there is nobody to answer.
 * @throws RefusedTokenError for a body that is too large or encoded
 */
export async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const { body: parsed } = request as { readonly body?: unknown };
  if (request.readableEnded && parsed !== undefined) return Buffer.isBuffer(parsed) ? parsed.toString() : parsed;
  const encoding = request.headers['content-encoding'] ?? 'identity';
  const chunks: Buffer[] = [];
  let size = 0;
  // Whatever is sent later is not read.
  const timer = setTimeout(() => request.destroy(), PATIENCE);
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size <= LARGEST) chunks.push(chunk);
    }
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
  if (size > LARGEST) throw new RefusedTokenError('too-large');
  if (encoding !== 'identity') throw new RefusedTokenError('foreign-type');
  return Buffer.concat(chunks).toString();
}

/** The token in the body of a logout. @throws RefusedTokenError */
export function logoutTokenIn(body: unknown): string {
  const given = typeof body === 'string' ? new URLSearchParams(body).getAll('logout_token') : [parsedTokenIn(body)];
  const [token, ...others] = given;
  if (typeof token === 'string' && others.length === 0) return token.trim();
  throw new RefusedTokenError('malformed');
}

function parsedTokenIn(body: unknown): unknown {
  return (body as { readonly logout_token?: unknown } | null)?.logout_token;
}

/** The token that is the body of an event. @throws RefusedTokenError */
export function eventTokenIn(body: unknown): string {
  if (typeof body === 'string') return body.trim();
  throw new RefusedTokenError('malformed');
}

/** The type of a body, without its parameters. */
export function contentTypeOf({ headers }: IncomingMessage): string | undefined {
  return headers['content-type']?.split(';', 1)[0]!.trim().toLowerCase();
}
