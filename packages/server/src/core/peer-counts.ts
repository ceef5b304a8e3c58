/** What the processes of a service count together. */
export type CountTopic =
  | 'connections'
  | 'claimed-bytes'
  | 'token'
  | 'address'
  | 'authentication'
  | 'url-uploads'

/** Counts that the other processes of a service add to their own, some hundredths of a second later. */
export interface PeerCounts {
  /** Reports a change of a count of this process. */
  add(topic: CountTopic, key: string, change: number): void
  /** `receive` is called for each change of a count of another process. */
  subscribe(topic: CountTopic, receive: (key: string, change: number) => void): void
}
