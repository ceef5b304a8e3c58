import { test } from 'vitest'
import { hasTool } from './tools.ts'

const canBrowse = hasTool('chromium-headless-shell')
if (!canBrowse) console.warn('Nothing is tried in a browser: there is no chromium-headless-shell')

/** A test that needs a browser. Without one it is skipped, or fails in CI. */
export const browserTest = test.skipIf(!canBrowse && !process.env['CI'])
