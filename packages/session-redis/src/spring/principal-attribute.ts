import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';

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
