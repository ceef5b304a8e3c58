import { test } from 'vitest'

/** A test in a browser, which it gets from chromium.ts. */
export const browserTest = test
