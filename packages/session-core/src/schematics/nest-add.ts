import { randomBytes } from 'node:crypto';
import { posix } from 'node:path';
import type { Rule, SchematicContext } from '@angular-devkit/schematics';
import { type Application, type ApplicationOptions, changing, install } from './application.js';
import { ModuleClass } from './module-class.js';
import { enableShutdownHooks } from './program-start.js';
import { Refusal } from './refusal.js';
import { Templates } from './templates.js';

interface AddOptions extends ApplicationOptions {
  readonly store?: 'redis' | 'memory';
  readonly login?: boolean;
  readonly health?: boolean;
  readonly compose?: boolean;
  readonly test?: boolean;
  readonly module?: string;
  readonly skipInstall?: boolean;
}

/** The files of the folder `sessions`, each with the trait of the applications that get it. */
const FILES = [
  ['sessions.module.ts', 'sessions'],
  ['redis-options.ts', 'redis'],
  ['health.controller.ts', 'health'],
  ['login.controller.ts', 'login'],
  ['users.ts', 'login'],
] as const;

const COMPOSE_FILES = ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml'];

/** `nest add @nest-session/core`: all that an application without sessions needs, or nothing. */
export function nestAdd(options: AddOptions): Rule {
  return changing(options, (application, context) => {
    const file = application.importing('SessionModule', '@nest-session/core');
    if (file) context.logger.info(`This application has sessions already: ${file.slice(1)} imports SessionModule.`);
    else addSessions(application, options, context);
  });
}

function addSessions(application: Application, options: AddOptions, context: SchematicContext): void {
  const { sources, sourceRoot } = application;
  const root = ModuleClass.root(application, options.module);
  const traits = traitsOf(application, options);
  const templates = new Templates(context, traits, application.ending(root.path));
  const folder = `/${sourceRoot}/sessions`;
  for (const [name, trait] of FILES) {
    if (traits.has(trait)) application.create(`${folder}/${name}`, templates.text(name));
  }
  sources.write(root.path, [
    application.import('SessionsModule', root.path, `${folder}/sessions.module.ts`),
    ...root.added('imports', 'SessionsModule'),
  ]);
  enableShutdownHooks(application, context);
  if (traits.has('test')) addTest(application, templates);
  if (traits.has('compose')) addRedis(application, templates, context);
  const added = application.addPackages(packagesFor(application, traits), testPackagesFor(application, traits));
  if (added.length > 0 && options.skipInstall)
    context.logger.info(`Install what package.json asks for: ${added.join(', ')}.`);
  if (added.length > 0 && !options.skipInstall) install(context);
  if (traits.has('login'))
    context.logger.info(`Nobody can sign in before ${sourceRoot}/sessions/users.ts knows users.`);
}

/** What decides which files and lines an application gets. */
function traitsOf(application: Application, options: AddOptions): Set<string> {
  const { packages, tree } = application;
  const isRedis = options.store !== 'memory';
  const [hasLogin, hasHealth] = [options.login !== false, options.health !== false];
  const hasVitest = 'vitest' in packages && !('jest' in packages);
  const hasAddress = tree.exists('.env') && /^\s*REDIS_URL\s*=/m.test(tree.readText('.env'));
  const isFastify = application.importing('FastifyAdapter', '@nestjs/platform-fastify') !== undefined;
  const traits: Record<string, boolean> = {
    sessions: true,
    redis: isRedis,
    memory: !isRedis,
    login: hasLogin,
    health: hasHealth,
    indicator: hasHealth && isRedis,
    compose: isRedis && options.compose !== false && !hasAddress,
    test: hasLogin && options.test !== false && (hasVitest || 'jest' in packages),
    fastify: isFastify,
    express: !isFastify,
    vitest: hasVitest,
    globals: !hasVitest && !('@types/jest' in packages),
  };
  return new Set(Object.keys(traits).filter((name) => traits[name]));
}

function addTest(application: Application, templates: Templates): void {
  const { dir, base } = posix.parse(application.sourceRoot);
  const text = templates.text('sessions.e2e-spec.ts').replaceAll("'../src/", `'../${base}/`);
  application.create(posix.join('/', dir, 'test/sessions.e2e-spec.ts'), text);
}

function packagesFor({ packages }: Application, traits: ReadonlySet<string>): Record<string, string> {
  if (!traits.has('redis')) return {};
  const range = packages['@nest-session/core'] ?? '';
  // Of an unpublished version: nobody else may own the name of what is missing.
  if (!('@nest-session/redis' in packages) && !/^[\^~]?\d/.test(range))
    throw new Refusal('Install @nest-session/redis as you have installed @nest-session/core, and try again');
  return {
    '@nest-session/redis': range,
    '@nestjs/schedule': isNest11(packages) ? '^6.0.0' : '^12.0.0',
    // TypeORM accepts no ioredis 6.
    ioredis: 'typeorm' in packages ? '^5.11.0' : '^6.0.0',
    ...(traits.has('indicator') && { '@nestjs/terminus': isNest11(packages) ? '^11.0.0' : '^12.0.0' }),
  };
}

function testPackagesFor({ packages }: Application, traits: ReadonlySet<string>): Record<string, string> {
  return traits.has('test') ? { '@nestjs/testing': isNest11(packages) ? '^11.0.0' : '^12.0.0' } : {};
}

function isNest11(packages: Readonly<Record<string, string>>): boolean {
  return /\d+/.exec(packages['@nestjs/core'] ?? '')?.[0] === '11';
}

/** A Redis for `docker compose up`, and its address with a new password in `.env`. */
function addRedis(application: Application, templates: Templates, context: SchematicContext): void {
  const { tree } = application;
  const isFirst = COMPOSE_FILES.every((path) => !tree.exists(path));
  const path = isFirst ? 'compose.yaml' : 'compose.redis.yaml';
  application.create(path, templates.text('compose.yaml'));
  const password = randomBytes(24).toString('base64url');
  application.append('.env', `REDIS_PASSWORD=${password}`, `REDIS_URL=redis://app:${password}@localhost:6379`);
  const ignored = tree.exists('.gitignore') ? tree.readText('.gitignore').split(/\r?\n/) : undefined;
  if (ignored && !ignored.some((line) => /^\/?\.env\*?$/.test(line.trim()))) application.append('.gitignore', '.env');
  context.logger.info(`Start Redis: docker compose${isFirst ? '' : ` --file ${path}`} up --detach`);
}
