/** Something that ships, and the words that texts have for it. */
interface Feature {
  /** As the API reports, the tables of options or the list of commands name it. */
  readonly name: string;
  readonly words: RegExp;
}

export const FEATURES: readonly Feature[] = [
  { name: 'AuthenticatedGuard', words: /signed-in users?|session principal ?name/ },
  { name: 'BrowserSessions', words: /several sessions/ },
  { name: 'CsrfGuard', words: /csrf/ },
  { name: 'DeadlineModule', words: /deadlines?/ },
  { name: 'ExpressSessionModule', words: /express-session|connect-redis|passport/ },
  { name: 'HeaderSessionIdResolver', words: /headers? instead|bearer tokens?/ },
  { name: 'OnSecurityEvent', words: /security events?|suspicious requests?/ },
  { name: 'OnSessionEvent', words: /session events?|(?:an )?event (?:for|of) (?:an? )?(?:expiry|ends?)/ },
  { name: 'RememberMe', words: /remember-me/ },
  { name: 'SessionAdminModule', words: /admin(?:istration)? (?:page|ui)|pages? for administrators|dashboards?/ },
  { name: 'SessionHealthIndicator', words: /health (?:checks?|indicators?)|terminus/ },
  { name: 'SessionTelemetryModule', words: /metrics?|traces?|tracing|opentelemetry|prometheus/ },
  { name: 'SessionWebSocketModule', words: /(?:web)?sockets?|gateways?/ },
  { name: 'Sessions', words: /(?:all|every|the) sessions? of (?:a|the|one) user|sign(?:ing)? out everywhere/ },
  { name: 'TestClock', words: /fake clock|test helpers?/ },
  { name: 'absoluteTimeout', words: /absolute (?:timeouts?|lifetime)/ },
  { name: 'anonymousTimeout', words: /timeouts? (?:of|for) visitors/ },
  { name: 'cluster', words: /cluster/ },
  { name: 'encryption', words: /encryption/ },
  { name: 'indexes', words: /index(?:es)?/ },
  {
    name: 'maxSessions',
    words: /max(?:imum)? ?sessions|concurrent sessions|limits? (?:of|for|to) the (?:number of )?sessions/,
  },
  { name: 'replicas', words: /wait for replicas/ },
  { name: 'sentinels', words: /sentinels?/ },
  { name: 'spring', words: /spring (?:boot|session)/ },
  { name: 'doctor', words: /command line|cli/ },
  { name: 'erase', words: /gdpr/ },
  { name: 'repartition', words: /number of partitions/ },
];

/** What stands between the words for a feature and those for its absence. */
const NEAR = '(?:\\S+ ){0,3}';
const NOT_THERE =
  '(?:(?:is|are|has|have|does|do|comes?|was|were) )?(?:none yet|not (?:yet|here|there|possible|supported|available|included|implemented|built)|missing|unsupported|up to you|fixed)\\b';
const THERE_IS_NO =
  '(?:there (?:is|are)|has|have|with|comes with|offers|provides|knows|ships) no|no (?:support|option|way|command|page) (?:for|to|of)|(?:does|do) not (?:yet )?(?:have|support|offer|provide|know|ship|work with)|lacks?|(?:is|are) the only';
const BUILD =
  '(?:(?:write|build|implement|create|register) (?:an?|your own|another)|have to (?:write|build|implement|keep)|(?:write|build) it yourself|by hand)';

/** What a sentence about a feature says that denies it. */
const DENIALS = new Map(FEATURES.map(({ name, words }) => [name, denialOf(`\\b(?:${words.source})\\b`)]));

function denialOf(thing: string): RegExp {
  const absent = [`${thing}[(),;]* ${NEAR}${NOT_THERE}`, `(?:${THERE_IS_NO}) ${NEAR}${thing}`];
  const orders = [`${BUILD} ${NEAR}${NEAR}${thing}`, `(?:keep|store|put) (?:an?|your own) ${thing}`];
  return new RegExp([...absent, ...orders].join('|'), 'i');
}

export interface Suspect {
  readonly text: string;
  readonly feature: string;
}

/** The sentences and rows of a page that say that a feature is not there, or tell the reader to build it. */
export function suspects(markdown: string): Suspect[] {
  return sentences(markdown).flatMap((text) => {
    const spoken = asWords(text);
    const denied = [...DENIALS].filter(([, denial]) => denial.test(spoken)).map(([name]) => name);
    // A sentence with its name says how to have it.
    const unnamed = denied.filter((name) => !text.includes(`\`${name}`) && !text.includes(`\`@${name}`));
    return unnamed.map((feature) => ({ text, feature }));
  });
}

/** `maximumSessions()` as "maximum Sessions", `session.id` as "session id", and the cells of a row as one text. */
function asWords(text: string): string {
  return text
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .replaceAll(/(\w)\.(?=\w)/g, '$1 ')
    .replaceAll(/[`*|]|\(\)/g, '')
    .replaceAll(/\s+/g, ' ');
}

/** The sentences and the rows of tables, without blocks of code. */
export function sentences(markdown: string): string[] {
  const blocks = markdown.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '').split(/\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.) ?)/);
  return blocks.flatMap((block) => {
    const text = block.trim().replaceAll(/\s+/g, ' ');
    return text.startsWith('|') ? [text] : text.split(/(?<=[.?!])\s+/);
  });
}
