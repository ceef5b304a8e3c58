import { test } from 'vitest'
import { hasTool } from './tools.ts'

const canBrowse = hasTool('chromium')
if (!canBrowse) console.warn('Nothing is tried in a browser: there is no chromium')

/** A test that needs a browser; where nothing may be skipped, it fails for want of one. */
export const browserTest = test.skipIf(!canBrowse && !process.env['CI'])
