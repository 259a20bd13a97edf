/** Sends a request and resolves to its JSON. @throws Error with the message of the server */
export async function request(method, path, body, headers = {}, signal) {
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const response = await fetch(path, { method, headers, body: JSON.stringify(body), signal });
  const text = await response.text();
  const answer = text === '' ? undefined : JSON.parse(text);
  if (!response.ok) throw new Error(answer?.message ?? response.statusText);
  return answer;
}

/**
 * A request that changes something. Its token is a fresh one: after a sign-in in another tab, one from before is
 * invalid.
 */
export async function change(method, path, body) {
  const { token } = await request('GET', '/csrf');
  return request(method, path, body, { 'X-CSRF-Token': token });
}
