import { PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import { readSecurityContext, SECURITY_CONTEXT } from './security.context.js';
import { readStoredValue } from './stored-value.js';

/**
 * Spring's name of the index of principals, and of the attribute that an application sets for it without Spring
 * Security.
 */
export const SPRING_PRINCIPAL_NAME =
  'org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME';

/** The name that an attribute of Spring has here; undefined for one that would be taken for our principal. */
export function nameHere(attribute: string): string | undefined {
  if (attribute === SPRING_PRINCIPAL_NAME) return PRINCIPAL_ATTRIBUTE;
  return attribute === PRINCIPAL_ATTRIBUTE ? undefined : attribute;
}

/** The name that an attribute has in Spring. */
export function nameInSpring(attribute: string): string {
  return attribute === PRINCIPAL_ATTRIBUTE ? SPRING_PRINCIPAL_NAME : attribute;
}

/**
 * Adds to the texts of attributes, by their names here, the name of the user where only a context of Spring Security
 * has it. Returns that name.
 */
export function addPrincipal(attributes: Map<string, string>): string | undefined {
  const context = attributes.get(SECURITY_CONTEXT);
  if (context === undefined || attributes.has(PRINCIPAL_ATTRIBUTE)) return undefined;
  const name = readSecurityContext(readStoredValue(Buffer.from(context)))?.name;
  if (name !== undefined) attributes.set(PRINCIPAL_ATTRIBUTE, JSON.stringify(name));
  return name;
}
