import { useEffect, useState } from 'preact/hooks'
import { loadSignInInfo } from '../service/sign-in-info.ts'
import { serviceUrl } from '../service/urls.ts'

/**
 * The address of the S3 protocol as the page can know it: a reverse proxy may have another one. Null where the service does not offer the
 * protocol, or if that is unknown.
 */
async function loadS3Endpoint(): Promise<string | null> {
  const s3 = (await loadSignInInfo())?.s3
  return s3 ? endpointOf(serviceUrl(), s3) : null
}

/** The service itself has no TLS: behind a page with TLS, a proxy serves a host of its own at the usual port. */
export function endpointOf(
  { protocol, hostname }: URL,
  { host, port }: { readonly host: string | null; readonly port: number },
): string {
  if (host !== null && protocol === 'https:') return `https://${host}`
  return `${protocol}//${host ?? hostname}:${port}`
}

/** The address of the S3 protocol; null while it is unknown, and where there is none. */
export function useS3Endpoint(): string | null {
  const [endpoint, setEndpoint] = useState<string | null>(null)
  useEffect(() => {
    let unmounted = false
    void loadS3Endpoint().then((loaded) => {
      if (!unmounted) setEndpoint(loaded)
    })
    return () => {
      unmounted = true
    }
  }, [])
  return endpoint
}
