import { Module } from '@nestjs/common';
import { ShopModule } from '../shop/shop.module.js';
import { NestSessionEnds } from '../sides/nest-session.ends.js';
import { NestSessionGateway } from '../sides/nest-session.gateway.js';
import { NestSessionSide } from '../sides/nest-session.side.js';
import { ComparisonController } from './comparison.controller.js';
import { Referee } from './referee.js';
import { Runs } from './runs.js';
import { Sides } from './sides.js';

/** The split screen: the same shop with express-session and with nest-session. Your application needs none of it. */
@Module({
  imports: [ShopModule],
  controllers: [ComparisonController, NestSessionEnds, NestSessionSide],
  providers: [NestSessionGateway, Referee, Runs, Sides],
})
export class ComparisonModule {}
