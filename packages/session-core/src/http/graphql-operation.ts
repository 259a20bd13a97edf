import type { IncomingMessage } from 'node:http';
import type { ExecutionContext } from '@nestjs/common';
import { SessionStateError } from '../errors/session.errors.js';
import { requestOf } from './request-of.js';

/** What a resolver is told of the operation, as far as it is used here. */
interface Info {
  readonly variableValues: object;
  readonly operation: { readonly operation: string };
  readonly parentType: unknown;
  readonly schema: { getSubscriptionType(): unknown };
}

/** The objects in which drivers, and the option `context` of applications, pass a request on. */
interface Context {
  readonly req?: object & Context;
  readonly request?: object;
  readonly reply?: Context;
  readonly extra?: Context;
}

/** A call of a resolver: which request it serves, and as part of what. */
export class GraphqlOperation {
  readonly #info: Info | undefined;

  private constructor(
    /** The request of the platform; of a connection, the one that opened it. */
    readonly request: object,
    info: unknown,
  ) {
    this.#info = info as Info | undefined;
  }

  /** Undefined when the GraphQL context has no request. */
  static find(context: ExecutionContext): GraphqlOperation | undefined {
    const args = context.getArgs<unknown[]>();
    // Without arguments of the field, as a resolver of references has it, the context comes second.
    const at = args.length > 3 ? 2 : 1;
    const request = requestIn(args[at]);
    return request && new GraphqlOperation(request, args[at + 1]);
  }

  /** @throws SessionStateError when the GraphQL context has no request */
  static of(context: ExecutionContext): GraphqlOperation {
    const found = GraphqlOperation.find(context);
    if (found) return found;
    throw new SessionStateError(NO_REQUEST);
  }

  /** The request of Node.js. */
  get incoming(): IncomingMessage {
    return requestOf(this.request);
  }

  /** The same object for all resolvers of one execution, and another one for each event of a subscription. */
  get execution(): object {
    return this.#info?.variableValues ?? this;
  }

  /** Whether it is a subscription, or an event of one. */
  get isSubscription(): boolean {
    return this.#info?.operation.operation === 'subscription';
  }

  /** Whether the application sent it, as an event of a subscription, and not the client. */
  get isEvent(): boolean {
    const info = this.#info;
    return info !== undefined && this.isSubscription && info.parentType !== info.schema.getSubscriptionType();
  }
}

function requestIn(context: unknown): object | undefined {
  if (typeof context !== 'object' || context === null) return undefined;
  const { req, request, reply, extra }: Context = context;
  // Apollo's driver passes the context of a connection on as if it were a request.
  return req?.extra?.request ?? req ?? extra?.request ?? request ?? reply?.request;
}

const NO_REQUEST =
  'There is no session here, because the GraphQL context has no request: return it in the option `context` of ' +
  'GraphQLModule.forRoot(), as in `context: ({ req }) => ({ req })`';
