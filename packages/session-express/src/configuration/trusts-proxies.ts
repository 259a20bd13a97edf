import type { HttpServer } from '@nestjs/common';

/** Whether the platform trusts a proxy. True without a platform, which has no requests that could come by one. */
export function trustsProxies(platform: HttpServer | undefined): boolean {
  const instance: unknown = platform?.getInstance();
  if (!instance) return true;
  switch (platform?.getType()) {
    case 'express':
      return Boolean((instance as { get(setting: string): unknown }).get('trust proxy'));
    case 'fastify':
      return Boolean(optionsOf(instance)?.trustProxy);
    default:
      return false;
  }
}

/** The options of an instance of Fastify, which shows `trustProxy` nowhere else. */
function optionsOf(instance: object): { readonly trustProxy?: unknown } | undefined {
  const key = Object.getOwnPropertySymbols(instance).find(({ description }) => description === 'fastify.options');
  return key && (instance as Record<symbol, { readonly trustProxy?: unknown }>)[key];
}
