// `@nest-session/test-infrastructure/browser`: apart, so that only tests of browsers load Playwright.
export { selfSignedCertificate } from './browser/certificate.js';
export { launchChromium, textAt } from './browser/chromium.js';
