import { randomBytes } from 'node:crypto';
import type { SchematicContext } from '@angular-devkit/schematics';
import type { Application } from './application.js';
import type { Templates } from './templates.js';

const COMPOSE_FILES = ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml'];

/** A Redis for `docker compose up`, and its address with a new password in `.env`. */
export function addRedis(application: Application, templates: Templates, context: SchematicContext): void {
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
