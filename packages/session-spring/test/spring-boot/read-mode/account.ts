// An application of NestJS that reads the sessions of Spring.
import 'reflect-metadata';
import { Controller, Get, type INestApplication, Module, type NestApplicationOptions } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Authenticated, Session, SessionModule, Sessions } from '@nest-session/core';
import { signedInAs, SpringSessionModule, springSessions } from '@nest-session/spring';
import { HttpAgent } from '@nest-session/testing';

/** The attribute of the user's name in Spring. */
export const PRINCIPAL = 'org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME';
const OF_USER = ['SPRING_SECURITY_CONTEXT', PRINCIPAL, 'nest-session.principal'];

@Controller()
class AccountController {
  constructor(private readonly sessions: Sessions) {}

  @Get('user')
  @Authenticated()
  user(@Session() session: Session) {
    const inAttribute = session.getAttribute<string[]>('authorities');
    const { name, authorities } = signedInAs(session) ?? {
      name: session.principalName,
      authorities: inAttribute ?? [],
    };
    return { name, authorities };
  }

  /** Without those that say who is signed in. */
  @Get('attributes')
  attributes(@Session() session: Session): Record<string, unknown> {
    const names = session.attributeNames.filter((name) => !OF_USER.includes(name));
    return Object.fromEntries(names.map((name) => [name, session.getAttribute(name)]));
  }

  @Get('sessions')
  @Authenticated()
  async ofUser(@Session() session: Session): Promise<string[]> {
    const ids: string[] = [];
    for await (const { id } of this.sessions.ofPrincipal(session.principalName!)) ids.push(id);
    return ids;
  }
}

/** Starts it on a free port. */
export async function startAccount(
  adapter: 'express' | 'fastify',
  url: string,
  mode: 'read' | 'shared' = 'read',
): Promise<INestApplication> {
  @Module({
    imports: [
      SessionModule.forRoot(springSessions()),
      // Longer than usual: the machine has several applications at a time.
      SpringSessionModule.forRoot({ url, mode, commandTimeout: '5s' }),
    ],
    controllers: [AccountController],
  })
  class AccountModule {}

  const options: NestApplicationOptions = { logger: ['error', 'warn'], abortOnError: false };
  const application =
    adapter === 'express'
      ? await NestFactory.create(AccountModule, options)
      : await NestFactory.create(AccountModule, new FastifyAdapter(), options);
  await application.listen(0, '127.0.0.1');
  return application;
}

/** The same browser at another server: it sends the cookies that it has. */
export async function atAccount(application: INestApplication, browser: HttpAgent): Promise<HttpAgent> {
  return new HttpAgent(await application.getUrl(), { headers: { cookie: browser.headersFor('/')['cookie'] } });
}
