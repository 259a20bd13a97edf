import { All, Controller, Get, Req, Session as NestSession } from '@nestjs/common';
import { Session } from '@nest-session/core';
import type { HttpAgent } from '@nest-session/testing';

/** A request of Express or Fastify, as untyped code uses it. */
export interface StepRequest {
  session: any;
  readonly sessionID: string;
  readonly sessionStore: any;
  /** Of Fastify: the request of Node.js. */
  readonly raw?: StepRequest;
}

export type Step<T> = (request: StepRequest) => T;

/** By request, what its handler does. */
const steps = new Map<string, Step<unknown>>();
let numbered = 0;

/** Runs the code that a test gives a request. */
@Controller()
export class StepController {
  @All('step/:number')
  async step(@Req() request: StepRequest & { params: { number: string } }) {
    try {
      return { result: (await steps.get(request.params.number)!(request)) ?? null };
    } catch (error) {
      return { error: (error as Error).stack };
    }
  }

  @Get('decorated')
  decorated(@NestSession() nest: any, @Session() core: any, @Req() request: StepRequest) {
    return { nest: nest === request.session, core: core === request.session, a: core.getAttribute('a') as unknown };
  }
}

/** Runs `step` in a request of this client, as its handler. Resolves to the response. */
export async function request(agent: HttpAgent, step: Step<unknown>, query = '', headers = {}) {
  const number = String(numbered++);
  steps.set(number, step);
  return agent.get(`/step/${number}${query}`, { headers });
}

/** Resolves to what `step` returns. @throws what it throws */
export async function runIn<T>(agent: HttpAgent, step: Step<T>, query = ''): Promise<Awaited<T>> {
  const response = await request(agent, step, query);
  const { result, error } = response.json<{ result: Awaited<T>; error?: string }>();
  if (response.status !== 200 || error !== undefined) throw new Error(error ?? `${response.status} ${response.text}`);
  return result;
}
