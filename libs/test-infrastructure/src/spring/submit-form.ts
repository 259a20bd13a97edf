import type { HttpAgent, HttpResponse } from '@nest-session/testing';

const HIDDEN_INPUT = /<input name="(\w+)" type="hidden" value="([^"]*)"/g;

/** Opens a page of Spring Security, and sends its form with these fields and those that are hidden in the page. */
export async function submitForm(
  browser: HttpAgent,
  path: string,
  fields: Readonly<Record<string, string>> = {},
): Promise<HttpResponse> {
  const { text } = await browser.get(path);
  const hidden = [...text.matchAll(HIDDEN_INPUT)].map(([, name, value]) => [name!, value!] as const);
  const body = new URLSearchParams({ ...Object.fromEntries(hidden), ...fields }).toString();
  return browser.post(path, body, { headers: { 'content-type': 'application/x-www-form-urlencoded' } });
}
