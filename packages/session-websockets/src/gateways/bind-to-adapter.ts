import type { WebSocketAdapter, WsMessageHandler } from '@nestjs/common';

/** Hooks for the servers and clients of gateways. */
export interface GatewayBinding {
  /** Called with each server or namespace before it has clients. */
  guard(server: unknown): void;
  /** Calls `connect`, which reports a client to a gateway. `args` are the arguments of the platform's event. */
  connect(args: readonly unknown[], connect: () => void): void;
  /** Calls `handle`, the handler of a client's message, with its arguments. */
  handle(client: unknown, args: readonly unknown[], handle: (args: readonly unknown[]) => unknown): Promise<unknown>;
}

type Handlers = WsMessageHandler[];
type Transform = Parameters<WebSocketAdapter['bindMessageHandlers']>[2];

const bound = new WeakSet<WebSocketAdapter>();

/**
 * Puts a binding between an adapter and the gateways. All servers, clients and messages pass through it, on every
 * platform and with every adapter that the application has extended.
 */
export function bindToAdapter(adapter: WebSocketAdapter, binding: GatewayBinding): void {
  if (bound.has(adapter)) return;
  bound.add(adapter);
  const { create, bindClientConnect, bindMessageHandlers } = adapter;
  adapter.create = (port: number, options?: unknown) => {
    const server: unknown = create.call(adapter, port, options);
    binding.guard(server);
    return server;
  };
  adapter.bindClientConnect = (server: unknown, callback: (...args: unknown[]) => void) =>
    bindClientConnect.call(adapter, server, (...args: unknown[]) =>
      binding.connect(args, () => callback(...args)),
    ) as unknown;
  adapter.bindMessageHandlers = (client: unknown, handlers: Handlers, transform: Transform) => {
    const held = handlers.map((handler) => ({ ...handler, callback: inSession(client, handler) }));
    return bindMessageHandlers.call(adapter, client, held, transform) as unknown;
  };

  function inSession(client: unknown, { callback }: WsMessageHandler): WsMessageHandler['callback'] {
    return (...args: unknown[]) => binding.handle(client, args, (held) => callback(...held) as unknown);
  }
}
