import type { Client, Usage } from '@mediabucket/client'
import { serviceUrl } from './urls.ts'

/** Loads the usage of a bucket on the days from `from` to `to`, both included. */
export type LoadUsage = (
  bucket: string,
  from: string,
  to: string,
  signal: AbortSignal,
) => Promise<readonly Usage[]>

export const createLoadUsage =
  (client: Client): LoadUsage =>
  async (bucket, from, to, signal) => {
    const url = new URL(`api/buckets/${encodeURIComponent(bucket)}/usage?from=${from}&to=${to}`, serviceUrl())
    return (await (await client.get(url, { signal })).json()).data
  }
