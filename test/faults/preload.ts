import { importOption } from '../harness/server.ts'
import { type BrokenOrder, brokenOrderVariable } from './orders.ts'
import { type Failpoint, failpointsVariable } from './steps.ts'

/** The settings of a server with these failpoints. */
export const withFailpoints = (...failpoints: readonly Failpoint[]): Record<string, string> => ({
  NODE_OPTIONS: importOption(new URL('failpoints.ts', import.meta.url)),
  [failpointsVariable]: JSON.stringify(failpoints),
})

/** The settings of a server that records its database calls, and in which those fail that a test names. */
export const withFailingStatements = (): Record<string, string> => ({
  NODE_OPTIONS: importOption(new URL('failing-statements.ts', import.meta.url)),
})

/** The settings of a server that stores uploads in this broken order. */
export const withBrokenOrder = (order: BrokenOrder): Record<string, string> => ({
  NODE_OPTIONS: importOption(new URL('broken-orders.ts', import.meta.url)),
  [brokenOrderVariable]: order,
})
