import {
  type Client,
  createItemStore,
  type ItemStoreOptions,
  type ItemStoreState,
  type Media,
} from '@mediabucket/client'
import {
  type ComputedRef,
  computed,
  type MaybeRefOrGetter,
  onMounted,
  onScopeDispose,
  toValue,
  watch,
} from 'vue'
import { followStore } from './store-refs.ts'

/** The items of a component. */
export interface Items {
  readonly items: ComputedRef<readonly Media[]>
  readonly status: ComputedRef<ItemStoreState['status']>
  readonly error: ComputedRef<Error | null>
  readonly hasMore: ComputedRef<boolean>
  /** Reads the next page. Resolves when its items are in the list. */
  readonly loadMore: () => Promise<void>
  /** Reads the list again, as far as it was read. */
  readonly reload: () => Promise<void>
}

/**
 * Lists items, page by page, with the options of `client.items`. When the options have other values, the list starts again; `initial` is not
 * compared. Requests begin when the component is mounted, so a server that renders it sends none.
 */
export function useItems(client: Client, options: MaybeRefOrGetter<ItemStoreOptions> = {}): Items {
  let store = createItemStore(client, toValue(options))
  const { state, follow, stop } = followStore(store)
  let isMounted = false
  onMounted(() => {
    isMounted = true
    store.open()
  })
  watch(
    () => {
      const { initial: _, ...selected } = toValue(options)
      return JSON.stringify(selected)
    },
    () => {
      store.close()
      store = createItemStore(client, toValue(options))
      follow(store)
      if (isMounted) store.open()
    },
  )
  onScopeDispose(() => {
    store.close()
    stop()
  })
  return {
    items: computed(() => state.value.items),
    status: computed(() => state.value.status),
    error: computed(() => state.value.error),
    hasMore: computed(() => state.value.hasMore),
    loadMore: () => store.loadMore(),
    reload: () => store.reload(),
  }
}
