import { useEffect, useState } from 'preact/hooks'
import { useGallery } from '../gallery.ts'

type ItemStatus = 'asked' | 'there' | 'gone' | 'unknown'

/** Whether an item is there: asked when it is opened, when its page has it no more, and when the service is back. */
export function useItemStatus(id: string, onPage: boolean): ItemStatus {
  const { items, connection } = useGallery()
  const [told, setTold] = useState<{ readonly id: string; readonly presence: ItemStatus } | null>(null)
  useEffect(() => {
    let over = false
    const ask = async () => {
      const there = await items.ask(id)
      const presence = there === null ? 'unknown' : there ? 'there' : 'gone'
      if (!over) setTold({ id, presence })
    }
    void ask()
    return () => {
      over = true
    }
  }, [id, onPage, items, connection.lost.value])
  return told?.id === id ? told.presence : 'asked'
}
