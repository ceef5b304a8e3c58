import { type Client, createItemStore, type ItemStoreOptions, type ItemStoreState } from '@mediabucket/client'
import { useEffect, useMemo } from 'react'
import { useHeld } from './use-held.ts'
import { useStore } from './use-store.ts'

/** The items of a component. */
export interface Items extends ItemStoreState {
  /** Reads the next page. Resolves when its items are in the list. */
  readonly loadMore: () => Promise<void>
  /** Reads the list again, as far as it was read. */
  readonly reload: () => Promise<void>
}

/**
 * Lists items, page by page, with the options of `client.items`. With other options the list starts again; options are compared by their
 * values, and `initial` is not compared. Create the client outside of the component.
 */
export function useItems(client: Client, options: ItemStoreOptions = {}): Items {
  const { initial: _, ...selected } = options
  const store = useHeld(client, JSON.stringify(selected), () => createItemStore(client, options))
  useEffect(() => {
    store.open()
    return () => store.close()
  }, [store])
  const state = useStore(store)
  const methods = useMemo(() => ({ loadMore: () => store.loadMore(), reload: () => store.reload() }), [store])
  return { ...state, ...methods }
}
