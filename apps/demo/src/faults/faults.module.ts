import { Module } from '@nestjs/common';
import { Faults } from './faults.js';
import { FaultsController } from './faults.controller.js';

@Module({ controllers: [FaultsController], providers: [Faults], exports: [Faults] })
export class FaultsModule {}
