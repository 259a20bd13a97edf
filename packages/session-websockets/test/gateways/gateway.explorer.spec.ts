import { Logger, Session as SessionOfNest } from '@nestjs/common';
import { ApplicationConfig, MetadataScanner, ModulesContainer } from '@nestjs/core';
import { WebSocketGateway } from '@nestjs/websockets';
import { jest } from '@jest/globals';
import { fillSessionParameters, GatewayExplorer } from '../../src/gateways/gateway.explorer.js';
import type { GatewaySockets } from '../../src/gateways/gateway-sockets.js';

@WebSocketGateway()
class Chat {}

class Jobs {}

const modulesWith = (metatype: object) =>
  new Map([['App', { providers: new Map([['it', { metatype }]]) }]]) as unknown as ModulesContainer;

const installed = (metatype: object, config: ApplicationConfig | undefined) => () =>
  new GatewayExplorer(modulesWith(metatype), new MetadataScanner(), {} as GatewaySockets, config).install();

/** A configuration that Nest does not ask for the adapter. */
const unasked = Object.assign(new ApplicationConfig(), { getIoAdapter: undefined }) as unknown as ApplicationConfig;

it.each([unasked, undefined])(
  'a version of Nest that hides when it connects gateways is refused at start',
  (config) => {
    expect(installed(Chat, config)).toThrow(
      'SessionWebSocketModule: This version of Nest does not ask for the adapter of gateways where the library can see it',
    );
  },
);

it('a version of Nest that hides when it connects gateways is not refused where there are none', () => {
  expect(installed(Jobs, unasked)).not.toThrow();
});

it('the log says so where Nest notes parameters in another way, and its @Session() stays as it is', () => {
  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  class Gateway {
    read(): void {}
  }
  SessionOfNest()(Gateway.prototype, 'read', 0);
  const noted = () => Reflect.getMetadata('__routeArguments__', Gateway, 'read') as object;
  const before = noted();
  fillSessionParameters(Gateway, 'read', () => () => undefined);
  expect(noted()).toBe(before);
  expect(warn.mock.calls.map(([line]) => line as string)).toEqual([
    expect.stringContaining('`@Session()` of @nestjs/common gives null in gateways'),
  ]);
  fillSessionParameters(Gateway, 'read');
  expect(Object.keys(noted())).toEqual([expect.stringContaining('__customRouteArgs__')]);
  warn.mockRestore();
});
