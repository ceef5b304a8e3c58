import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'],
    // Far above what any test takes: a test that hangs ends, and a busy machine fails none.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    pool: 'forks',
    globalSetup: ['test/harness/tools.ts', 'packages/gallery/ensure-built.ts'],
    // Most of a test's time is a server process of its own at work, on the other core.
    maxWorkers: 2,
  },
})
