import { Inject, Module, type OnModuleInit } from '@nestjs/common';
import { type AbstractHttpAdapter, HttpAdapterHost } from '@nestjs/core';
import { TestClock } from './test.clock.js';

/** Nest makes one instance of it, and so one clock, for an application, however many modules import it. */
@Module({ providers: [TestClock], exports: [TestClock] })
export class TestClockModule implements OnModuleInit {
  constructor(
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(TestClock) private readonly clock: TestClock,
  ) {}

  onModuleInit(): void {
    const adapter = this.host.httpAdapter as AbstractHttpAdapter | undefined;
    if (adapter) clocks.set(adapter.getHttpServer() as object, this.clock);
  }
}

const clocks = new WeakMap<object, TestClock>();

/** The clock of the application of a server; the real one of an application that is not under test. */
export function clockOf(server: object): { now(): number } {
  return clocks.get(server) ?? Date;
}
