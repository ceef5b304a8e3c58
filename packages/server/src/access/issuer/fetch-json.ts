/** Milliseconds for the whole response. */
const timeout = 5_000

/** Bytes. The documents of issuers have some kilobytes. */
const maxSize = 512 * 1024

/** Gets a JSON document. Follows no redirect, and reads no more than half a megabyte. Throws an Error without data of the response. */
export async function fetchJson(url: string): Promise<unknown> {
  const response = await fetch(url, {
    // A connection that was kept open may be closed by the issuer at the moment of the next request.
    headers: { accept: 'application/json', connection: 'close' },
    redirect: 'error',
    signal: AbortSignal.timeout(timeout),
  })
  if (!response.ok) {
    await response.body?.cancel()
    throw new Error(`${url} responded with status ${response.status}`)
  }
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > maxSize) throw new Error(`${url} responded with more than ${maxSize} bytes`)
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString())
  } catch {
    throw new Error(`${url} did not respond with JSON`)
  }
}
