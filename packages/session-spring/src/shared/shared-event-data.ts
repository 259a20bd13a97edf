import { ATTRIBUTE_FIELD } from '@nest-session/redis/internal';
import { addPrincipal, nameHere } from '../values/principal-attribute.js';

/** The fields of a session in an event, with the names that attributes have here, and with who is signed in. */
export function dataHere(data: Readonly<Record<string, string>>): Record<string, string> {
  const others = Object.entries(data).filter(([field]) => !field.startsWith(ATTRIBUTE_FIELD));
  const attributes = new Map<string, string>();
  for (const [field, text] of Object.entries(data)) {
    const here = field.startsWith(ATTRIBUTE_FIELD) ? nameHere(field.slice(ATTRIBUTE_FIELD.length)) : undefined;
    if (here !== undefined) attributes.set(here, text);
  }
  addPrincipal(attributes);
  return Object.fromEntries([
    ...others,
    ...[...attributes].map(([name, text]) => [ATTRIBUTE_FIELD + name, text] as const),
  ]);
}
