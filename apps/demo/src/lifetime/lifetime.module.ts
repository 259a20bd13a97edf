import { Module } from '@nestjs/common';
import { LifetimeController } from './lifetime.controller.js';

@Module({ controllers: [LifetimeController] })
export class LifetimeModule {}
