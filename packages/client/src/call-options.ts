/** What every call takes. */
export interface CallOptions {
  /** Aborts the call at any point, waits between tries included; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}
