// Beside the page, whatever prefix it has.
const BASE = new URL(document.body.dataset.base, document.baseURI);

/** What a path and its query are made of. Undefined parameters are left out. */
function addressOf(path, query = {}) {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
  return url;
}

async function request(method, path, query) {
  const response = await fetch(addressOf(path, query), { method, headers: { Accept: 'application/json' } }).catch(
    () => {
      throw new Error('The application cannot be reached. Try again.');
    },
  );
  if (response.status === 204) return undefined;
  const isJson = response.headers.get('Content-Type')?.includes('json') ?? false;
  if (!isJson) throw new Error('The application sent something else than expected. Load the page again and sign in.');
  const body = await response.json();
  if (!response.ok) throw new Error(messageOf(response, body));
  // Some applications wrap every response.
  return Object.hasOwn(body, 'data') ? body.data : body;
}

function messageOf({ status }, body) {
  const message = [body?.message].flat().join('. ');
  if (status === 401) return 'You are not signed in any more. Load the page again.';
  return message || `The application refused this (${status}).`;
}

let actions = 0;

/** Reads again when an action ended meanwhile: the answer may show what is gone by now. */
export async function read(path, query) {
  for (;;) {
    const before = actions;
    const body = await request('GET', path, query);
    if (actions === before) return body;
  }
}

/** What whoever looks at the page may do. */
export let rights = {};

export async function readOverview() {
  const overview = await read('overview');
  rights = overview.rights;
  return overview;
}

async function change(method, path, query) {
  try {
    return await request(method, path, query);
  } finally {
    actions++;
  }
}

export const remove = (path, query) => change('DELETE', path, query);
export const act = (path, query) => change('POST', path, query);
