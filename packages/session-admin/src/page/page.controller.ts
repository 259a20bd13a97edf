import { Get, Inject, NotFoundException, Param, Req, Res } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { requestOf } from '@nest-session/core/internal';
import { ADMIN_OPTIONS, type ResolvedAdminOptions } from '../configuration/session-admin.options.js';
import { PAGE_FILES } from './page-files.js';

// Allows only the files of the page, and no inline script or style.
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

export class PageController {
  readonly #html: string;

  constructor(
    @Inject(ADMIN_OPTIONS) { path }: ResolvedAdminOptions,
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
  ) {
    // Relative to the page, whatever prefix the application or a proxy puts before it.
    this.#html = PAGE_FILES['page.html']!.replaceAll('{{base}}', `${path.split('/').at(-1)!}/`);
  }

  @Get()
  show(@Req() request: object, @Res() response: object): void {
    const [path = ''] = (requestOf(request).url ?? '').split('?');
    if (path.endsWith('/')) this.host.httpAdapter.redirect(response, 308, `../${path.split('/').at(-2)!}`);
    else this.#send(response, 'page.html', this.#html);
  }

  @Get('files/:name')
  file(@Param('name') name: string, @Res() response: object): void {
    if (name === 'page.html' || !Object.hasOwn(PAGE_FILES, name)) throw new NotFoundException();
    this.#send(response, name, PAGE_FILES[name]!);
  }

  /** By the adapter, so that no interceptor changes it. */
  #send(response: object, name: string, text: string): void {
    const { httpAdapter } = this.host;
    httpAdapter.setHeader(response, 'Content-Type', TYPES[name.split('.').at(-1)!]!);
    httpAdapter.setHeader(response, 'Content-Security-Policy', POLICY);
    httpAdapter.setHeader(response, 'X-Frame-Options', 'DENY');
    // With `no-referrer`, browsers would send `Origin: null` from our own page.
    httpAdapter.setHeader(response, 'Referrer-Policy', 'same-origin');
    void httpAdapter.reply(response, text, 200);
  }
}
