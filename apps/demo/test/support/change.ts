import type { HttpAgent, HttpResponse } from '@nest-session/testing';

/** Sends a request that changes something, as the page does: with the CSRF token of the session. */
export async function change(agent: HttpAgent, method: string, path: string, body?: unknown): Promise<HttpResponse> {
  const { token } = (await agent.get('/csrf')).json<{ token: string }>();
  return agent.request(method, path, { body, headers: { 'X-CSRF-Token': token } });
}
