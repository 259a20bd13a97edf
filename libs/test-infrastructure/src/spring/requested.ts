import type { HttpAgent } from '@nest-session/testing';

/**
 * Resolves to the JSON that a route of an application of Spring answers with, undefined without any, and null for a
 * 404.
 * @throws Error with the status and the text of any other failure
 */
export async function requested<T>(agent: HttpAgent, method: string, path: string, body?: unknown): Promise<T> {
  const { status, text } = await agent.request(method, path, { body });
  if (status === 404) return null as T;
  if (status >= 400) throw new Error(`${method} ${path}: ${status} ${text}`);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}
