import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { readSecurityContext, SECURITY_CONTEXT } from './security.context.js';
import { readStoredValue } from './stored-value.js';

/** The attribute by which Spring Session knows the principal, and the name of its index. */
const OF_SPRING = 'org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME';

/** The name that an attribute of Spring has here. */
export function nameHere(attribute: string): string {
  return attribute === OF_SPRING ? PRINCIPAL_NAME_INDEX_NAME : attribute;
}

/** The name that an attribute has in Spring. */
export function nameInSpring(attribute: string): string {
  return attribute === PRINCIPAL_NAME_INDEX_NAME ? OF_SPRING : attribute;
}

/**
 * Adds to the texts of attributes, by their names here, the name of the user where only a context of Spring Security has it.
 * Returns that name.
 */
export function addPrincipal(attributes: Map<string, string>): string | undefined {
  const context = attributes.get(SECURITY_CONTEXT);
  if (context === undefined || attributes.has(PRINCIPAL_NAME_INDEX_NAME)) return undefined;
  const name = readSecurityContext(readStoredValue(Buffer.from(context)))?.name;
  if (name !== undefined) attributes.set(PRINCIPAL_NAME_INDEX_NAME, JSON.stringify(name));
  return name;
}
