import { useEffect, useState } from 'preact/hooks'
import { useGallery } from '../gallery-context.ts'

type ItemStatus = 'checking' | 'exists' | 'deleted' | 'unknown'

/** Whether an item exists. Checked when it is opened, when it leaves its page, and when the connection is restored. */
export function useItemStatus(id: string, onPage: boolean): ItemStatus {
  const { mediaCache, connection } = useGallery()
  const [result, setResult] = useState<{ readonly id: string; readonly status: ItemStatus } | null>(null)
  useEffect(() => {
    let unmounted = false
    const check = async () => {
      const exists = await mediaCache.check(id)
      const status = exists === null ? 'unknown' : exists ? 'exists' : 'deleted'
      if (!unmounted) setResult({ id, status })
    }
    void check()
    return () => {
      unmounted = true
    }
  }, [id, onPage, mediaCache, connection.lost.value])
  return result?.id === id ? result.status : 'checking'
}
