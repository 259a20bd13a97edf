// Allows only the files of the page, and no inline script or style.
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/** The headers of every response. */
export const SECURITY_HEADERS = new Map([
  ['Content-Security-Policy', POLICY],
  ['X-Content-Type-Options', 'nosniff'],
  // With `no-referrer`, browsers would send `Origin: null` from our own page.
  ['Referrer-Policy', 'same-origin'],
]);
