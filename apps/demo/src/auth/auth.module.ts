import { Module } from '@nestjs/common';
import { AuthController } from './auth.controller.js';
import { DevicesController } from './devices.controller.js';

@Module({ controllers: [AuthController, DevicesController] })
export class AuthModule {}
