import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Logger } from '@nestjs/common';
import { CookieSessionIdResolver, generateSessionKey, type SessionModuleOptions } from '../../src/index.js';
import { resolveSessionOptions } from '../../src/session.options.js';
import { LogRecorder } from './log.recorder.js';

const token = 'Ab-_'.padEnd(43, '0');
const other = 'B'.repeat(43);

function resolverOf(cookie: SessionModuleOptions['cookie'] = {}) {
  return new CookieSessionIdResolver(resolveSessionOptions({ cookie }).cookie);
}

function requestWith(headers: Record<string, string>, properties: object = {}): IncomingMessage {
  const request = new IncomingMessage(Object.assign(new Socket(), properties));
  return Object.assign(request, { headers });
}

describe('CookieSessionIdResolver', () => {
  it.each([
    [`SESSION=${token}`, token],
    [`a=1; SESSION=${token}; b=2`, token],
    [`a=1;SESSION=${token}`, token],
    [`\t SESSION= ${token} `, token],
    [`SESSION=; SESSION=short; SESSION=${token}; SESSION=${other}`, token],
    [`a=SESSION=${token}`, undefined],
    [`a="; SESSION=x"; SESSIONS=${token}`, undefined],
    [`session=${token}`, undefined],
    [`SESSION="${token}"`, undefined],
    [`SESSION=${token}x`, undefined],
    [`SESSION`, undefined],
    [';;;=;', undefined],
    ['', undefined],
  ])('reads %j', (cookie, expected) => {
    expect(resolverOf().resolve(requestWith({ cookie }))?.token.reveal()).toBe(expected);
  });

  it('reads no cookie where there is none', () => {
    expect(resolverOf().resolve(requestWith({}))).toBeUndefined();
  });

  it('passes 9 KB of cookies in linear time', () => {
    const resolver = resolverOf();
    const request = requestWith({ cookie: 'SESSION='.repeat(1125) + ';SESSION=a'.repeat(1000) });
    const start = process.hrtime.bigint();
    for (let round = 0; round < 100; round++) expect(resolver.resolve(request)).toBeUndefined();
    expect(Number(process.hrtime.bigint() - start) / 1e6).toBeLessThan(1000);
  });

  function setCookie(cookie: SessionModuleOptions['cookie'], request = requestWith({}), method = 'send'): string {
    const response = new ServerResponse(request);
    const resolver = resolverOf(cookie);
    if (method === 'send') resolver.send(request, response, generateSessionKey().token);
    else resolver.expire(request, response);
    return String(response.getHeader('Set-Cookie')).replace(/=[\w-]{43};/, '=token;');
  }

  it.each([
    [{}, 'SESSION=token; Path=/; HttpOnly; SameSite=Lax'],
    [{ secure: true, sameSite: 'none' }, 'SESSION=token; Path=/; HttpOnly; Secure; SameSite=None'],
    [
      { name: 'sid', path: '/app', domain: 'example.org', httpOnly: false, sameSite: 'strict' },
      'sid=token; Domain=example.org; Path=/app; SameSite=Strict',
    ],
  ] as [SessionModuleOptions['cookie'], string][])('with %j sets %s, and expires the same', (options, expected) => {
    expect(setCookie(options)).toBe(expected);
    expect(setCookie(options, requestWith({}), 'expire')).toBe(expected.replace('=token;', '=; Max-Age=0;'));
  });

  it.each([
    ['the platform says so', Object.assign(requestWith({}), { protocol: 'https' }), true],
    ['the platform denies it', Object.assign(requestWith({}, { encrypted: true }), { protocol: 'http' }), false],
    ['TLS', requestWith({}, { encrypted: true }), true],
    ['a header that nobody trusts', requestWith({ 'x-forwarded-proto': 'https' }), false],
  ])('Secure auto: %s', (_, request, secure) => {
    Logger.overrideLogger(new LogRecorder());
    expect(/; Secure/.test(setCookie({}, request))).toBe(secure);
  });

  it('replaces no other cookie', () => {
    const request = requestWith({});
    const response = new ServerResponse(request);
    response.setHeader('Set-Cookie', 'app=1');
    resolverOf().expire(request, response);
    expect(response.getHeader('Set-Cookie')).toEqual(['app=1', expect.stringMatching(/^SESSION=; Max-Age=0/)]);
  });
});
