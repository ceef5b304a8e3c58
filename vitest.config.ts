import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
    globalSetup: ['test/harness/tools.ts', 'packages/gallery/ensure-built.ts'],
    // Most of a test's time is a server process of its own at work, on the other core.
    maxWorkers: 2,
  },
})
