/** This version of Node.js lacks what the service needs of it. The message names it and what to install. */
export class UnsupportedNodeError extends Error {
  constructor(lack: string) {
    super(`Node.js ${process.versions.node} ${lack}. Install Node.js 24 and start the service with it.`)
  }
}
