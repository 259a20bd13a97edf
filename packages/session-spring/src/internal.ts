// `@nest-session/spring/internal`: what the packages of @nest-session share. Not for applications, and outside of
// semantic versioning: it changes with every version.
export {
  modeOfNamespace,
  namespaceOfSpring,
  namespaceProblemWith,
  SpringKeys,
  type SpringMode,
} from './keys/spring-keys.js';
export { lookAtSpring, type SpringOverview } from './look/spring-look.js';
