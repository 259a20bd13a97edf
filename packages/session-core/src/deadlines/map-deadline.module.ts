import { Module } from '@nestjs/common';
/** WIP */
@Module({})
export class MapDeadlineModule {}
