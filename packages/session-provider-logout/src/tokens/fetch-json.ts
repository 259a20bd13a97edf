import { UnavailableError } from './refused-token.error.js';

// Milliseconds, and bytes: key sets of large providers have some tens of kilobytes.
const PATIENCE = 5000;
const LARGEST = 512 * 1024;

/** Reads a small JSON document. Follows no redirect, which could lead to another host. @throws UnavailableError */
export async function fetchJson(address: string): Promise<unknown> {
  const controller = new AbortController();
  const { signal } = controller;
  // A timer that can be cleared keeps no process alive after the response.
  const timer = setTimeout(() => controller.abort(new Error(`it took longer than ${PATIENCE} ms`)), PATIENCE);
  try {
    const response = await fetch(address, { redirect: 'error', signal, headers: { Accept: 'application/json' } });
    if (response.status !== 200) throw new Error(`it responded with ${response.status}`);
    return JSON.parse(await textOf(response));
  } catch (cause) {
    throw new UnavailableError(`${address} gave no document`, undefined, { cause });
  } finally {
    clearTimeout(timer);
  }
}

async function textOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.byteLength;
    if (size > LARGEST) throw new Error(`it has more than ${LARGEST} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
