/** The version of the package; a test compares it with package.json. */
export const version = '0.1.0'

/** This version of Node.js lacks something that the service needs. The message names it and the version to install. */
export class UnsupportedNodeError extends Error {
  constructor(lack: string) {
    super(`Node.js ${process.versions.node} ${lack}. Install Node.js 24 and start the service with it.`)
  }
}
