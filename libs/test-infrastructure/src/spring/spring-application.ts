import { fileURLToPath } from 'node:url';
import { HttpAgent, type HttpAgentOptions } from '@nest-session/testing';
import { requested } from './requested.js';
import type { HeardEvent, JavaChange, JavaSession } from './java-session.js';
import { SpringProgram } from './spring-program.js';
import { SpringVisitor } from './spring-visitor.js';

const FOLDER = fileURLToPath(
  new URL('../../../../packages/session-spring/test/spring-boot/application/', import.meta.url),
);

/** How an application of Spring keeps its sessions. */
export interface SpringApplicationOptions {
  /** `RedisSessionRepository`, which has no events and no index, or `RedisIndexedSessionRepository`. */
  readonly repository: 'simple' | 'indexed';
  /** Where the indexed repository has the ends of sessions. @default 'buckets' */
  readonly expirations?: 'buckets' | 'sorted-set' | undefined;
  /**
   * That of Java; JSON; JSON with the class of each object and list; the same by the modules of Spring Security. Spring
   * Security has its context in the session with the first and the last. With the others, it has name and authorities
   * in attributes, because such a serializer could not read the context again.
   */
  readonly serializer: 'jdk' | 'plain' | 'typed' | 'security';
  readonly namespace: string;
  readonly redisUrl: string;
}

/**
 * A running Spring Boot with Spring Session and Spring Security, for tests. It ends with this process. A route that
 * fails rejects with what Java throws.
 */
export class SpringApplication {
  /** Without cookies. */
  readonly #agent: HttpAgent;

  private constructor(private readonly program: SpringProgram) {
    this.#agent = new HttpAgent(program.origin, { keepAlive: true });
  }

  /** Packages it unless that has been done. @throws as `packagedJava()`, and Error when it does not start */
  static async start({ repository, expirations, serializer, ...where }: SpringApplicationOptions) {
    return new SpringApplication(
      await SpringProgram.start(FOLDER, {
        'spring.session.data.redis.repository-type': repository === 'simple' ? 'default' : repository,
        'spring.session.data.redis.namespace': where.namespace,
        'spring.data.redis.url': where.redisUrl,
        serializer,
        ...(expirations && { expirations }),
      }),
    );
  }

  get origin(): string {
    return this.program.origin;
  }

  /** What it has printed until now. */
  get output(): string {
    return this.program.output;
  }

  /** A browser. */
  visitor(options?: HttpAgentOptions): SpringVisitor {
    return new SpringVisitor(new HttpAgent(this.origin, options));
  }

  /** Creates a session, which no cookie has, and saves it. */
  create(change: JavaChange = {}): Promise<JavaSession> {
    return requested(this.#agent, 'POST', '/sessions', change);
  }

  /** Null when Java finds none. It does not renew the session. */
  load(id: string): Promise<JavaSession | null> {
    return requested(this.#agent, 'GET', pathOf(id));
  }

  /** Loads, renews, changes and saves a session. Resolves to it as it is then, null when Java finds none. */
  change(id: string, change: JavaChange): Promise<JavaSession | null> {
    return requested(this.#agent, 'PATCH', pathOf(id), change);
  }

  async delete(id: string): Promise<void> {
    await requested(this.#agent, 'DELETE', pathOf(id));
  }

  /** The sessions of a user, by the index. @throws Error with the simple repository */
  ofPrincipal(name: string): Promise<JavaSession[]> {
    return requested(this.#agent, 'GET', `/sessions?principal=${encodeURIComponent(name)}`);
  }

  /** The events that Java has heard since it started or was told to forget them. None with the simple repository. */
  events(): Promise<HeardEvent[]> {
    return requested(this.#agent, 'GET', '/events');
  }

  async forgetEvents(): Promise<void> {
    await requested(this.#agent, 'DELETE', '/events');
  }

  async stop(): Promise<void> {
    this.#agent.close();
    await this.program.stop();
  }
}

function pathOf(id: string): string {
  return `/sessions/${encodeURIComponent(id)}`;
}
