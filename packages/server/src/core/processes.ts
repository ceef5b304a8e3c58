import { ExplainedError } from './faults.ts'

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

/**
 * How much higher the niceness of other threads is than that of the main thread. A larger step makes listings beside uploads
 * faster, and uploads beside a flood of listings slower (bench/RESULTS.md).
 */
export const nicenessStep = 8

/** What the processes of a service count together. */
export type CountTopic = 'connections' | 'claimed-bytes' | 'token' | 'address' | 'authentication'

/** Counts that the other processes of a service add to their own, some hundredths of a second later. */
export interface PeerCounts {
  /** Reports a change of a count of this process. */
  add(topic: CountTopic, key: string, change: number): void
  /** `receive` is called for each change of a count of another process. */
  subscribe(topic: CountTopic, receive: (key: string, change: number) => void): void
}
