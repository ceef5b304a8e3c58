import type { Store } from '@mediabucket/client'
import { type ShallowRef, shallowReadonly, shallowRef } from 'vue'

/** The state of a store as a ref, and a function that makes it follow another store. The former store is no longer followed. */
export function followStore<T>(store: Store<T>): {
  readonly state: Readonly<ShallowRef<T>>
  readonly follow: (next: Store<T>) => void
  readonly stop: () => void
} {
  const state = shallowRef(store.state)
  let stop = subscribe(store)
  function subscribe(followed: Store<T>): () => void {
    return followed.subscribe(() => {
      state.value = followed.state
    })
  }
  return {
    state: shallowReadonly(state),
    follow(next) {
      stop()
      state.value = next.state
      stop = subscribe(next)
    },
    stop: () => stop(),
  }
}
