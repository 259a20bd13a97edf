import { SPRING_RULES, type SpringLook, type SpringOverview } from '@nest-session/spring/internal';
import { counted } from './counted.js';
import { adviceForFindings, linesOfFinding, summaryOfFindings } from './shown-findings.js';

interface Found {
  readonly findings: SpringLook['findings'];
  readonly left: SpringLook['findings'];
  readonly repair: boolean;
  readonly looked: number;
}

const SERIALIZERS: Readonly<Record<NonNullable<SpringOverview['serializer']>, string>> = {
  java: 'JDK serialization, the default of Spring Session',
  'plain-json': 'plain JSON, without classes',
  'typed-json': 'JSON with the class of each object and list',
  'security-json': 'JSON with the class of each object and list, by the modules of Spring Security',
  json: 'JSON. No value that was read is an object or a list, so it may be with or without classes',
  mixed: 'JDK serialization and JSON, both',
};

/** An application of Spring with the indexed repository, and with JSON. `serializer`: the lines that make one. */
function javaWith(...serializer: readonly string[]): readonly string[] {
  return [
    '@Configuration(proxyBeanMethods = false)',
    '@EnableRedisIndexedHttpSession',
    'class SharedSessions {',
    '  @Bean RedisSerializer<Object> springSessionDefaultRedisSerializer() {',
    ...serializer.map((line) => `    ${line}`),
    '  }',
    '}',
  ];
}

const WITH_PLAIN_JSON = javaWith('return GenericJacksonJsonRedisSerializer.builder().build();');
// Plain JSON comes back without the classes of Spring Security, and nobody could sign in.
const WITH_SECURITY = javaWith(
  'var loader = getClass().getClassLoader();',
  'var allowed = BasicPolymorphicTypeValidator.builder()',
  '    .allowIfSubType("java.").allowIfSubType("org.springframework.");',
  'var modules = SecurityJacksonModules.getModules(loader, allowed);',
  'return new GenericJacksonJsonRedisSerializer(JsonMapper.builder().addModules(modules).build());',
);

/** What the command prints: as JSON, and as lines. */
export function springReport(
  { overview, hasLookedForLeftovers }: SpringLook,
  { findings, left, repair, looked }: Found,
): [json: object, lines: string[]] {
  const java = javaFor(overview);
  const json = { ...overview, java, hasLookedForLeftovers, findings, ...(repair && { left }), looked };
  const summary = summaryOfFindings(findings, SPRING_RULES, looked);
  return [
    json,
    [
      ...factsOf(overview),
      ...(hasLookedForLeftovers ? [] : ['On a Cluster, what Spring leaves behind is not looked for.']),
      ...(java.length === 0
        ? []
        : [
            '',
            'For JSON and the indexed repository, add this to the application of Spring, unless it has both.',
            'With sessions in another form, its requests fail then, so change spring.session.data.redis.namespace, too.',
            '',
            ...java.map((line) => `  ${line}`),
          ]),
      '',
      ...findings.flatMap((each) => linesOfFinding(each, SPRING_RULES, repair)),
      summary,
      ...adviceOf(findings, left, repair),
    ],
  ];
}

function factsOf({ repository, expirations, serializer, hasUuids, ...rest }: SpringOverview): string[] {
  const { sessions, principals, clockAhead, unreadableAttributes } = rest;
  const facts: [name: string, text: string][] = [
    [
      'repository',
      repository === 'simple'
        ? 'simple: RedisSessionRepository, without events and indexes'
        : `indexed: RedisIndexedSessionRepository, expirations in ${expirations === 'buckets' ? 'buckets' : 'a sorted set'}`,
    ],
    ['serializer', serializer === undefined ? 'unknown: no session was whole' : SERIALIZERS[serializer]],
    [
      'sessions',
      `${sessions.found} found, ${sessions.sampled} read: ${sessions.alive} alive, ${sessions.signedIn} signed in by Spring Security`,
    ],
    [
      'cookie',
      `the session id ${hasUuids ? '' : '(no UUID) '}is the token. Spring Boot puts it into the cookie in base64, and Redis does not tell whether yours does`,
    ],
    [
      'index',
      principals === 0
        ? 'no user can be found by name'
        : `sessions of ${counted(principals, 'user')} can be found by name`,
    ],
    ['clock', clockOf(clockAhead)],
    [
      'attributes',
      unreadableAttributes.length === 0
        ? 'all can be read'
        : `some cannot be read: ${unreadableAttributes.map((name) => JSON.stringify(name)).join(', ')}`,
    ],
    [
      'nest-session',
      repository === 'indexed' && serializer?.endsWith('-json')
        ? "can read these sessions, and share them: mode: 'read', or 'shared'"
        : "can read these sessions: mode: 'read'",
    ],
  ];
  return facts.map(([name, text]) => `${name.padEnd(14)}${text}`);
}

function clockOf(ahead: number | undefined): string {
  if (ahead === undefined) return 'nothing tells that of the applications';
  const seconds = Math.abs(ahead) / 1000;
  return `that of an application is ${seconds.toFixed(1)} s ${ahead < 0 ? 'behind' : 'ahead of'} that of Redis`;
}

/** What the application of Spring would have to be. */
function javaFor({ repository, serializer, hasSpringSecurity }: SpringOverview): readonly string[] {
  const [java, wanted] = hasSpringSecurity ? [WITH_SECURITY, 'security-json'] : [WITH_PLAIN_JSON, 'plain-json'];
  return repository === 'indexed' && serializer === wanted ? [] : java;
}

/** Advice to repair is for what can be repaired. */
function adviceOf(findings: Found['findings'], left: Found['left'], repair: boolean): string[] {
  const mendable = findings.filter(({ rule }) => SPRING_RULES[rule].mending !== undefined);
  return adviceForFindings(mendable, left, repair);
}
