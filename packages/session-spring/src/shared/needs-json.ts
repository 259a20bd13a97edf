/** What to do about sessions of Java serialization. */
export const NEEDS_JSON =
  "Option `mode: 'shared'` needs JSON, and a Spring application keeps sessions by Java serialization, so that its requests " +
  'fail at those of NestJS: run `nest-session spring`, which prints the Java code for JSON. Then give both ' +
  'applications another namespace, or remove the sessions that are there, at which requests fail from then on';
