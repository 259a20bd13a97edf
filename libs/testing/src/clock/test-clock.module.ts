import { Module } from '@nestjs/common';
import { TestClock } from './test.clock.js';

/** Nest makes one instance of it, and so one clock, for an application, however many modules import it. */
@Module({ providers: [TestClock], exports: [TestClock] })
export class TestClockModule {}
