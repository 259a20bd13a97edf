import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './compiler.js';
import { section } from './markdown.js';

interface Place {
  readonly page: string;
  /** The part of the page. */
  readonly heading: string;
}

/** Where each recipe is: a whole program with what it prints. */
export const RECIPES: ReadonlyMap<string, Place> = new Map<string, Place>([
  ['sign-in-with-roles', { page: 'protecting-routes.md', heading: 'Roles: a whole program' }],
  ['my-devices', { page: 'finding-sessions.md', heading: 'Show users their devices' }],
  ['passport', { page: 'passport-and-oauth2.md', heading: 'Passport' }],
  ['oauth2', { page: 'passport-and-oauth2.md', heading: 'OAuth2' }],
  ['identity-provider', { page: 'identity-providers.md', heading: 'Log in and out: a whole program' }],
  ['csrf', { page: 'protecting-routes.md', heading: 'Cross-site request forgery (CSRF)' }],
  ['front-end', { page: 'front-ends.md', heading: 'A front end on another origin' }],
  ['websocket', { page: 'websockets-and-graphql.md', heading: 'WebSockets: a whole program' }],
  ['graphql', { page: 'websockets-and-graphql.md', heading: 'GraphQL' }],
  ['unpaid-orders', { page: 'deadlines.md', heading: 'Cancel orders that nobody pays' }],
  ['held-seats', { page: 'deadlines.md', heading: 'Hold a seat for ten minutes' }],
  ['durable-events', { page: 'redis-events.md', heading: 'A whole program' }],
  ['health-and-deploys', { page: 'deploying.md', heading: 'Health checks' }],
  ['tests', { page: 'testing.md', heading: 'A whole test' }],
]);

export function recipeText(recipe: string): string {
  const { page, heading } = RECIPES.get(recipe)!;
  return section(readFileSync(join(ROOT, 'docs', page), 'utf8'), heading);
}
