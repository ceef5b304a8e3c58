import type { Store } from '@mediabucket/client'
import { useCallback, useSyncExternalStore } from 'react'

/** The current state of a store. The component is rendered again after each change. */
export function useStore<T>(store: Store<T>): T {
  const subscribe = useCallback((listener: () => void) => store.subscribe(listener), [store])
  const read = () => store.state
  return useSyncExternalStore(subscribe, read, read)
}
