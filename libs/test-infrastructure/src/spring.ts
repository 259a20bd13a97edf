// `@nest-session/test-infrastructure/spring`: apart, so that only tests beside Spring Boot need a JDK and Maven.
export { missingJava } from './spring/missing-java.js';
export { packagedJava } from './spring/packaged-java.js';
export { ProgramPair } from './spring/program-pair.js';
export type { HeardEvent, JavaChange, JavaSession } from './spring/java-session.js';
export { SpringApplication, type SpringApplicationOptions } from './spring/spring-application.js';
export { SpringVisitor } from './spring/spring-visitor.js';
export { StartedParts } from './spring/started-parts.js';
export { submitForm } from './spring/submit-form.js';
export { UnfetchedPackagesError } from './spring/unfetched-packages.error.js';
