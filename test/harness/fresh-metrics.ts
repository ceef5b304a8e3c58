import { until } from './until.ts'

/** A text of `/metrics` rendered after the call: the service caches it for a second (docs/interface.md O2). */
export async function freshMetrics(
  url: string,
  get: () => Promise<Response> = () => fetch(`${url}/metrics`),
): Promise<string> {
  const text = async () => (await get()).text()
  const earlier = await text()
  // Each text counts the requests for the previous one.
  return until('a new text of the metrics', async () => {
    const now = await text()
    return now !== earlier && now
  })
}
