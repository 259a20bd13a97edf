import type { SpringJson } from '../values/spring-json.serializer.js';

/** Our message has a blank where the form is not known: it tells other instances nothing of Spring's. */
export const OF_UNKNOWN_FORM = '{ ';

/** How a message of Java serialization begins, in UTF-8 as it arrives. */
export const OF_JAVA = '\ufffd\ufffd\u0000\u0005';

/**
 * How the message begins that tells Spring of a new session. Without a class, a serializer with classes does not read
 * it.
 */
export function messageBegin(form: SpringJson | undefined): string {
  if (form === 'plain') return '{';
  return `${form ? '{' : OF_UNKNOWN_FORM}"@class":"java.util.HashMap",`;
}
