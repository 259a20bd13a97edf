// What applications write, and what must not compile, against the built types. Checked by npm run typecheck.
import { SessionTelemetryModule, type SessionTelemetryOptionsFactory } from '@nest-session/opentelemetry';

export function options(): unknown[] {
  return [
    SessionTelemetryModule.forRoot(),
    SessionTelemetryModule.forRoot({ semanticMetrics: true }),
    SessionTelemetryModule.forRootAsync({ useFactory: (on: boolean) => ({ semanticMetrics: on }), inject: ['ON'] }),
    SessionTelemetryModule.forRootAsync({ useClass: Options }),
    // @ts-expect-error true or false
    SessionTelemetryModule.forRoot({ semanticMetrics: 'yes' }),
    // @ts-expect-error an unknown option
    SessionTelemetryModule.forRoot({ semanticMetric: true }),
  ];
}

class Options implements SessionTelemetryOptionsFactory {
  createSessionTelemetryOptions() {
    return { semanticMetrics: true };
  }
}
