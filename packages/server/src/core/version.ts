import { ExplainedError } from './explained-error.ts'

/** The version of the package; a test compares it with package.json. */
export const version = '0.1.0'

/** Node.js lacks a feature that the service needs. The message names the feature and the versions that have it. */
export class UnsupportedNodeError extends ExplainedError {
  constructor(lack: string) {
    super(
      `Node.js ${process.versions.node} ${lack}. Install Node.js 26 or 24, and start the service with it.`,
    )
  }
}
